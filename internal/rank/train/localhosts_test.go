package train_test

import (
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// hostSet are the settings of runs with teams: server 0 on a host of its own, then two hosts of two ranks.
var hostSet = []string{"train.stop.samples=3840", "train.stop.updates=null", "cluster.servers=1",
	"cluster.placement=pack", "cluster.hierarchy=node", "model={name: mlp, layers: [16]}", "train.optimizer={name: sgd, lr: 0.1}"}

// With one step within a host and one between hosts, a team of ranks that average their parameters makes the update
// of the sum of their gradients.
func TestTeamsThatAverageEveryStepAverageGradients(t *testing.T) {
	want := trainOn(t, "abbccc", load(t, hostSet...)).Parameters
	got := trainOn(t, "abbccc", load(t, append(hostSet, "local={policy: averaging, steps: 1}")...)).Parameters
	atMost(t, got, want, 1e-5)
}

// Two periods, within and between hosts, against plain loops over all ranks.
func TestTeamsOfTwoPeriodsAgainstAPlainLoop(t *testing.T) {
	for _, p := range []struct {
		set            string
		between, steps int // exchanges between hosts in so many averagings within them, of so many steps
	}{
		{"local={policy: averaging, steps: 3}", 3, 1},
		{"local={policy: averaging, steps: 6, host_steps: 2}", 3, 2},
		{"local={policy: averaging, steps: 4, host_steps: 4}", 1, 4},
	} {
		c := load(t, append(hostSet, p.set, "train.stop.samples=1920")...)
		got := trainOn(t, "abbccc", c).Parameters
		atMost(t, got, twoPeriods(t, []int{2, 3}, p.between, p.steps, 1920), 1e-5)
	}
}

// twoPeriods trains ranks on hosts, which average within their host after so many steps, and between hosts after so
// many of those averagings.
func twoPeriods(t *testing.T, hosts []int, between, steps, samples int) []float32 {
	c := load(t, append(hostSet, "cluster.hierarchy=none")...)
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ranks := range hosts {
		n += ranks
	}
	batch := c.Train.BatchPerWorker
	model, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), batch)
	if err != nil {
		t.Fatal(err)
	}
	params := configstest.Params(t, c.ModelSpec(), set.Samples())
	zeros := func() (v [][]float32) {
		for _, p := range params {
			v = append(v, make([]float32, p.N()))
		}
		return v
	}
	global, grads := zeros(), zeros()
	for k, p := range params {
		workload.Fill(global[k], c.Seed, p, 0)
	}
	samplers := make([]*dataset.Sampler, n)
	for w := range samplers {
		rows, err := dataset.Partition(c.Data.Partition, set.Train.Rows(), n, w, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[w] = dataset.NewSampler(rows, batch, c.Seed, w)
	}
	b := dataset.Batch{X: make([]float32, batch*set.Train.Cols()), Y: make([]int32, batch), N: batch, Cols: set.Train.Cols()}
	add := func(to, from [][]float32, weight float32) {
		for k := range to {
			for e := range to[k] {
				to[k][e] += weight * from[k][e]
			}
		}
	}
	for step := 0; step*n*batch < samples; {
		next := zeros()
		rank := 0
		for _, ranks := range hosts {
			team := zeros()
			add(team, global, 1)
			for a := range between {
				mean := zeros()
				for r := range ranks {
					own := zeros()
					add(own, team, 1)
					for s := range steps {
						set.Train.Fill(b.X, b.Y, samplers[rank+r].Batch(int64(step+a*steps+s), nil))
						model.Bind(own, grads)
						model.Forward(b, nil)
						model.Backward(nil)
						add(own, grads, -0.1/float32(batch))
					}
					add(mean, own, 1/float32(ranks))
				}
				team = mean
			}
			add(next, team, float32(ranks)/float32(n)) // weighted by samples
			rank += ranks
		}
		global = next
		step += between * steps
	}
	var all []float32
	for _, v := range global {
		all = append(all, v...)
	}
	return all
}
