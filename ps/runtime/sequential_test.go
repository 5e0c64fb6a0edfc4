package runtime

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"fluentps/configs"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
)

// sequential trains on one machine, in the plainest way: per step, the concatenated batches of all workers
// in rank order, the mean gradient, momentum in float64. It shares with the real run the model's kernels,
// the samples and the initial values, and nothing else: no plan, node, scheme, optimizer or transport.
func sequential(t *testing.T, c *configs.Config, workers, steps int) []float32 {
	t.Helper()
	set, err := cached(DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	batch := c.Train.BatchPerWorker
	m, err := workload.NewModel(workload.ModelSpec{Name: c.Model.Name, Layers: c.Model.Layers}, set.Train.Cols(), set.Classes, cpu.New(1), batch*workers)
	if err != nil {
		t.Fatal(err)
	}
	params := workload.Params(m)
	w, g := make([][]float32, len(params)), make([][]float32, len(params))
	velocity := make([][]float64, len(params))
	for k, p := range params {
		w[k], g[k], velocity[k] = make([]float32, p.N()), make([]float32, p.N()), make([]float64, p.N())
		workload.Fill(w[k], c.Seed, p, 0)
	}
	m.Bind(w, g)
	samplers := make([]*workload.Sampler, workers)
	for j := range samplers {
		rows, err := workload.Partition(c.Data.Partition, set.Train.Rows(), workers, j, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[j] = workload.NewSampler(rows, batch, c.Seed, j)
	}
	n := batch * workers
	b := workload.Batch{X: make([]float32, n*set.Train.Cols()), Y: make([]int32, n), N: n, Cols: set.Train.Cols()}
	for i := range steps {
		var rows []int32
		for _, s := range samplers {
			rows = append(rows, s.Batch(int64(i), nil)...)
		}
		set.Train.Fill(b.X, b.Y, rows)
		for j := range workers {
			workload.NewAugmenter(c.Data.Augment, testImage, c.Seed, j).Apply(b.X[j*batch*b.Cols:][:batch*b.Cols], int64(i))
		}
		m.Forward(b, nil)
		m.Backward(nil)
		for k := range w {
			for e := range w[k] {
				velocity[k][e] = c.Train.Optimizer.Momentum*velocity[k][e] + float64(g[k][e])/float64(n)
				w[k][e] -= float32(c.Train.Optimizer.LR * velocity[k][e])
			}
		}
	}
	var flat []float32
	for _, v := range w {
		flat = append(flat, v...)
	}
	return flat
}

const fashion = "data={set: idx, path: /usr/share/datasets/fashion-mnist}"

// The law "BSP is exact": equal to a sequential run on the concatenated batch within float tolerance, here
// 1e-5 relative in the norm after 100 steps of softmax and 20 of an MLP.
func TestSequentialRunOnTheConcatenatedBatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
		set   []string
	}{
		{"softmax", 100, nil},
		{"mlp", 20, []string{"model={name: mlp, layers: [16, 12]}"}},
		{"softmax on fashion-mnist", 100, []string{fashion}},
		{"mlp on fashion-mnist", 20, []string{fashion, "model={name: mlp, layers: [64, 32]}"}},
	} {
		if slices.Contains(c.set, fashion) {
			if underRace {
				t.Logf("%s is left out: the race detector makes it minutes, and generated data runs the same code", c.name)
				continue
			}
			if _, err := os.Stat("/usr/share/datasets/fashion-mnist"); err != nil {
				t.Logf("%s is left out: make deps installs the data set", c.name)
				continue
			}
		}
		for servers := 1; servers <= 3; servers++ {
			t.Run(fmt.Sprintf("%s/%d servers", c.name, servers), func(t *testing.T) {
				set := append([]string{fmt.Sprintf("train.stop.updates=%d", c.steps), fmt.Sprintf("cluster.servers=%d", servers)}, c.set...)
				cfg := load(t, set...)
				got := train(t, cfg, 4+servers).Parameters
				want := sequential(t, cfg, 4, c.steps)
				var diff, norm float64
				for e := range want {
					d := float64(got[e]) - float64(want[e])
					diff += d * d
					norm += float64(want[e]) * float64(want[e])
				}
				rel := math.Sqrt(diff / norm)
				t.Logf("%s, %d steps, %d servers: relative difference %.2g", c.name, c.steps, servers, rel)
				if len(got) != len(want) || !(rel <= 1e-5) {
					t.Errorf("relative difference %.3g over %d parameters, the limit is 1e-5", rel, len(want))
				}
			})
		}
	}
}
