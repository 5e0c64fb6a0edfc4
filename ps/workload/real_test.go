//go:build !race

// One goroutine reads and trains here: the race detector would find nothing and take minutes.

package workload

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const fashionMNIST = "/usr/share/datasets/fashion-mnist"

// testData returns a folder of the real sets. It skips the test if there is none.
func testData(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("FLUENTPS_TEST_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("real data set %s is not here; set FLUENTPS_TEST_DATA to a folder that has it", name)
	}
	return dir
}

func fashion(t *testing.T) DataSpec {
	t.Helper()
	if _, err := os.Stat(fashionMNIST); err != nil {
		t.Skip("Fashion-MNIST is not here: apt-get install dataset-fashion-mnist")
	}
	return DataSpec{Set: "idx", Path: fashionMNIST}
}

func optdigits(t *testing.T) DataSpec {
	dir := testData(t, "optdigits")
	return DataSpec{Set: "csv", Path: filepath.Join(dir, "optdigits.tra.gz"), Test: filepath.Join(dir, "optdigits.tes.gz"), Scale: 16}
}

func a9a(t *testing.T) DataSpec {
	dir := testData(t, "libsvm")
	return DataSpec{Set: "libsvm", Path: filepath.Join(dir, "a9a.gz"), Test: filepath.Join(dir, "a9a.t.gz")}
}

func TestRealSets(t *testing.T) {
	for _, c := range []struct {
		name        string
		spec        func(t *testing.T) DataSpec
		cols        int
		train, test []int
		first       string // SHA-256 of the first file, unpacked
	}{
		{"fashion-mnist", fashion, 784, repeat(10, 6000), repeat(10, 1000), "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
		{"optdigits", optdigits, 64, []int{376, 389, 380, 389, 387, 376, 377, 387, 380, 382},
			[]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"},
		{"a9a", a9a, 123, []int{32561 - 7841, 7841}, []int{16281 - 3846, 3846},
			"f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
		{"cifar10", func(t *testing.T) DataSpec { return DataSpec{Set: "cifar10", Path: testData(t, "cifar-10")} }, 3072,
			repeat(10, 5000), repeat(10, 1000), "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := c.spec(t)
			r, err := Describe(spec)
			if err != nil {
				t.Fatal(err)
			}
			if r.Cols != c.cols || !slices.Equal(r.Train.Counts, c.train) || !slices.Equal(r.Test.Counts, c.test) || r.Files[0].SHA256 != c.first {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// The constants that normalise CIFAR-10 are of its training images, to their four digits.
func TestCIFAR10Moments(t *testing.T) {
	set, err := Load(DataSpec{Set: "cifar10", Path: testData(t, "cifar-10")})
	if err != nil {
		t.Fatal(err)
	}
	for c := range 3 {
		mean, std := set.Train.(*pixels).moments(c)
		if math.Abs(mean/255-cifarMean[c]) > 5e-5 || math.Abs(std/255-cifarStd[c]) > 5e-5 {
			t.Errorf("channel %d has mean %.6f and deviation %.6f, the constants are %g and %g", c, mean/255, std/255, cifarMean[c], cifarStd[c])
		}
	}
}

func TestA9ASparse(t *testing.T) {
	set, err := Load(a9a(t))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := len(set.Train.(*sparse).index), len(set.Test.(*sparse).index); a != 451592 || b != 225731 {
		t.Errorf("%d and %d entries, want 451592 and 225731", a, b)
	}
}

// Momentum SGD with a cosine step size and one worker reaches the known accuracy of these models. The settings also suit a batch of
// 128 over all workers. The floors allow for the spread between seeds.
func TestSequentialTraining(t *testing.T) {
	for _, c := range []struct {
		name         string
		spec         func(t *testing.T) DataSpec
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
			set, err := Load(c.spec(t))
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

func train(t *testing.T, set *Set, spec ModelSpec, epochs int, lr, momentum float64) float64 {
	const batch, seed = 128, 1
	m := newBound(t, spec, set.Train.Cols(), set.Classes, batch, seed)
	velocity := make([][]float32, len(m.params))
	for i, p := range m.params {
		velocity[i] = make([]float32, len(p))
	}
	rows, err := Partition("disjoint_random", set.Train.Rows(), 1, 0, seed)
	if err != nil {
		t.Fatal(err)
	}
	sampler := NewSampler(rows, batch, seed, 0)
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
	all.Take(set.Test, ascending(0, set.Test.Rows(), 1))
	_, correct, _ := m.Eval(all)
	return float64(correct) / float64(all.N)
}

func repeat(n, v int) []int { return slices.Repeat([]int{v}, n) }
