//go:build !race

// One goroutine reads and trains here: the race detector would find nothing and take minutes.

package workload

import (
	"math"
	"path/filepath"
	"testing"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/datasettest"
)

func fashion(t *testing.T) dataset.Spec {
	return dataset.Spec{Set: "idx", Path: datasettest.Fashion(t)}
}

func optdigits(t *testing.T) dataset.Spec {
	dir := datasettest.Folder(t, "optdigits")
	return dataset.Spec{Set: "csv", Path: filepath.Join(dir, "optdigits.tra.gz"), Test: filepath.Join(dir, "optdigits.tes.gz"), Scale: 16}
}

func a9a(t *testing.T) dataset.Spec {
	dir := datasettest.Folder(t, "libsvm")
	return dataset.Spec{Set: "libsvm", Path: filepath.Join(dir, "a9a.gz"), Test: filepath.Join(dir, "a9a.t.gz")}
}

// Momentum SGD with a cosine step size and one worker reaches the known accuracy of these models. The settings also suit a batch of
// 128 over all workers. The floors allow for the spread between seeds.
func TestSequentialTraining(t *testing.T) {
	for _, c := range []struct {
		name         string
		spec         func(t *testing.T) dataset.Spec
		model        string
		epochs       int
		lr, momentum float64
		floor        float64
	}{
		{"fashion-mnist", fashion, "softmax", 6, 0.05, 0.9, 0.84},
		{"optdigits", optdigits, "softmax", 60, 0.3, 0.9, 0.945},
		{"a9a", a9a, "logistic", 5, 0.3, 0, 0.849},
		{"a9a-sparse", a9a, "sparse_logistic", 5, 0.3, 0, 0.849},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := dataset.Load(c.spec(t))
			if err != nil {
				t.Fatal(err)
			}
			accuracy := train(t, set, ModelSpec{Name: c.model}, c.epochs, c.lr, c.momentum)
			t.Logf("test accuracy %.4f", accuracy)
			if accuracy < c.floor {
				t.Errorf("test accuracy %.4f, want at least %g", accuracy, c.floor)
			}
		})
	}
}

func train(t *testing.T, set *dataset.Set, spec ModelSpec, epochs int, lr, momentum float64) float64 {
	const batch, seed = 128, 1
	m := newBound(t, spec, set.Train.Cols(), set.Classes, batch, seed)
	velocity := make([][]float32, len(m.params))
	for i, p := range m.params {
		velocity[i] = make([]float32, len(p))
	}
	rows, err := dataset.Partition("disjoint_random", set.Train.Rows(), 1, 0, seed)
	if err != nil {
		t.Fatal(err)
	}
	sampler := dataset.NewSampler(rows, batch, seed, 0)
	b := NewBatch(spec.Name, set.Samples(), batch)
	var picked []int32
	steps := int64(epochs * set.Train.Rows() / batch)
	for i := range steps {
		picked = sampler.Batch(i, picked)
		b.Take(set.Train, picked)
		m.Forward(b, nil)
		m.Backward(nil)
		step := float32(lr / 2 * (1 + math.Cos(math.Pi*float64(i)/float64(steps))))
		for p, grad := range m.grads {
			for j, g := range grad {
				velocity[p][j] = float32(momentum)*velocity[p][j] + g/batch
				m.params[p][j] -= step * velocity[p][j]
			}
		}
	}
	all := NewBatch(spec.Name, set.Samples(), set.Test.Rows())
	all.Take(set.Test, ascending(0, set.Test.Rows()))
	_, correct, _ := m.Eval(all)
	return float64(correct) / float64(all.N)
}
