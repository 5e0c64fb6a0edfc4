package train_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// sequential trains on one machine, in the plainest way: each step takes the concatenated batches of all workers in rank
// order, the mean gradient, and sgd with l1, momentum or adam in float64. It shares with the real run only the model's
// kernels, the samples and the initial values: no plan, node, scheme, optimizer or transport.
func sequential(t *testing.T, c *configs.Config, workers, steps int) []float32 {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	batch := c.Train.BatchPerWorker
	m, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), batch*workers)
	if err != nil {
		t.Fatal(err)
	}
	params := configstest.Params(t, c.ModelSpec(), set.Samples())
	w, g := make([][]float32, len(params)), make([][]float32, len(params))
	step := make([]func(e int, g float64) float64, len(params)) // of element e, at learning rate 1
	for k, p := range params {
		w[k], g[k], step[k] = make([]float32, p.N()), make([]float32, p.N()), stepper(c.Train.Optimizer, p.N())
		workload.Fill(w[k], c.Seed, p, 0)
	}
	m.Bind(w, g)
	samplers := make([]*dataset.Sampler, workers)
	for j := range samplers {
		rows, err := dataset.Partition(c.Data.Partition, set.Train.Rows(), workers, j, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[j] = dataset.NewSampler(rows, batch, c.Seed, j)
	}
	n := batch * workers
	b := workload.NewBatch(c.Model.Name, set.Samples(), n)
	for i := range steps {
		var rows []int32
		for _, s := range samplers {
			rows = append(rows, s.Batch(int64(i), nil)...)
		}
		b.Take(set.Train, rows)
		for j := 0; j < workers && b.X != nil; j++ {
			images.NewAugmenter(c.Data.Augment, testImage, c.Seed, j).Apply(b.X[j*batch*b.Cols:][:batch*b.Cols], int64(i))
		}
		m.Forward(b, nil)
		m.Backward(nil)
		for k := range w {
			for e := range w[k] {
				w[k][e] -= float32(c.Train.Optimizer.LR * step[k](e, float64(g[k][e])/float64(n)))
				if l1 := c.Train.Optimizer.L1; l1 > 0 && !strings.HasSuffix(params[k].Name, ".bias") {
					w[k][e] -= float32(min(c.Train.Optimizer.LR*l1, math.Abs(float64(w[k][e]))) * math.Copysign(1, float64(w[k][e])))
				}
			}
		}
	}
	var flat []float32
	for _, v := range w {
		flat = append(flat, v...)
	}
	return flat
}

// stepper makes the function that turns the k-th gradient of element e into its k-th step.
func stepper(o configs.Optimizer, n int) func(e int, g float64) float64 {
	m, v, t := make([]float64, n), make([]float64, n), make([]int, n)
	switch o.Name {
	case "sgd":
		return func(_ int, g float64) float64 { return g }
	case "momentum":
		return func(e int, g float64) float64 {
			m[e] = o.Momentum*m[e] + g
			return m[e]
		}
	}
	return func(e int, g float64) float64 { // adam: Kingma and Ba 2015, Algorithm 1
		t[e]++
		m[e] = o.Beta1*m[e] + (1-o.Beta1)*g
		v[e] = o.Beta2*v[e] + (1-o.Beta2)*g*g
		mHat, vHat := m[e]/(1-math.Pow(o.Beta1, float64(t[e]))), v[e]/(1-math.Pow(o.Beta2, float64(t[e])))
		return mHat / (math.Sqrt(vHat) + o.Epsilon)
	}
}

const fashion = "data={set: idx, path: /usr/share/datasets/fashion-mnist}"

// The law "BSP is exact": equal to a sequential run on the concatenated batch within float tolerance, here
// 1e-5 relative in the norm after 100 steps of softmax, 20 of an MLP and 10 of LeNet.
func TestSequentialRunOnTheConcatenatedBatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
		set   []string
	}{
		{"softmax", 100, nil},
		{"mlp", 20, []string{"model={name: mlp, layers: [16, 12]}"}},
		{"mlp with adam", 30, []string{"model={name: mlp, layers: [16, 12]}", "train.optimizer={name: adam, lr: 0.01, epsilon: 1e-4}"}},
		{"sparse logistic with l1", 100,
			[]string{"data.classes=2", "model={name: sparse_logistic}", "train.optimizer={name: sgd, lr: 0.1, l1: 0.02}"}},
		{"matrix factorization", 100,
			[]string{"data={set: generated_ratings, rows: 480, matrix: {rows: 20, columns: 30}}",
				"model={name: matrix_factorization, rank: 3}", "train.optimizer={name: momentum, lr: 0.5}"}},
		{"softmax on fashion-mnist", 100, []string{fashion}},
		{"mlp on fashion-mnist", 20, []string{fashion, "model={name: mlp, layers: [64, 32]}"}},
		{"lenet on fashion-mnist", 10, []string{fashion, "model={name: lenet}"}},
	} {
		if slices.Contains(c.set, fashion) {
			if stationtest.UnderRace {
				t.Logf("%s is left out: the race detector makes it minutes, and generated data runs the same code", c.name)
				continue
			}
			if _, err := os.Stat("/usr/share/datasets/fashion-mnist"); err != nil {
				t.Logf("%s is left out: make deps installs the data set", c.name)
				continue
			}
		}
		var want []float32 // the plain loop knows no servers
		for servers := 1; servers <= 3; servers++ {
			if slices.Contains(c.set, fashion) && servers != 2 { // minutes, and the other cases compare the numbers of servers
				continue
			}
			t.Run(fmt.Sprintf("%s/%d servers", c.name, servers), func(t *testing.T) {
				set := append([]string{fmt.Sprintf("train.stop.updates=%d", c.steps), fmt.Sprintf("cluster.servers=%d", servers)}, c.set...)
				cfg := load(t, set...)
				got := mustTrain(t, cfg, 4+servers).Parameters
				if want == nil {
					want = sequential(t, cfg, 4, c.steps)
				}
				rel := relative(got, want)
				t.Logf("%s, %d steps, %d servers: relative difference %.2g", c.name, c.steps, servers, rel)
				if len(got) != len(want) || !(rel <= 1e-5) {
					t.Errorf("relative difference %.3g over %d parameters, the limit is 1e-5", rel, len(want))
				}
			})
		}
	}
}

// testImage is the shape that asImages gives the 20 features of generated rows.
var testImage = dataset.Image{Channels: 1, Height: 4, Width: 5}

// asImages declares generated rows to be images, because no generated image set has this shape.
func asImages(_ int, spec dataset.Spec) (*dataset.Set, error) {
	set, err := cached(spec)
	if err != nil {
		return nil, err
	}
	mine := *set
	mine.Image = testImage
	return &mine, nil
}

// Each worker augments its own batches with the augmenter of its index, however gradients are summed. The same run gives
// the same bits.
func TestAugmentedRunsEqualSequentialOnes(t *testing.T) {
	for name, c := range map[string]struct{ hosts, set string }{
		"2 servers": {"aaaaaa", "cluster.servers=2"},
		"hierarchy": {"aabbcc", "cluster.hierarchy=node"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, c.set)
			run := func(a images.Augment) *sidestest.Result {
				cfg.Data.Augment = a
				return sidestest.Train(t, cfg, 6, sidestest.Options{Hosts: c.hosts, Load: asImages})
			}
			plain := run(images.Augment{})
			spec := images.Augment{Crop: 1, Flip: true}
			got, again := run(spec), run(spec)
			if got.SHA256() != again.SHA256() {
				t.Error("the same run ends with other bits")
			}
			want := sequential(t, cfg, 4, 30)
			if d := relative(got.Parameters, want); !(d <= 1e-5) {
				t.Errorf("%.3g away from a sequential run, the limit is 1e-5", d)
			}
			if d := relative(plain.Parameters, want); d < 0.01 {
				t.Errorf("without augmentation a run ends only %.3g away", d)
			}
		})
	}
}
