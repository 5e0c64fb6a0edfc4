package runtime

import (
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/real"
	"fluentps/kernels/cpu"
)

// A run in which a worker computes a part of another's batches, two samples at a time, has the bits of the same run in virtual
// time: a sum of two parts is the same in both orders.
func TestTasksHaveTheBitsOfASimulatedRun(t *testing.T) {
	for name, set := range map[string][]string{
		"softmax":             nil,
		"mlp, by layer":       {"model={name: mlp, layers: [6]}", "shards.slice=layer"},
		"colocate, momentum":  {"cluster.placement=colocate"},
		"adam, bfloat16":      {"train.optimizer={name: adam, lr: 0.01}", "payload={push: bfloat16, pull: bfloat16}"},
		"overlapping batches": {"train.batch_per_worker=null", "train.batch_global=33", "data.partition=overlap_reshuffle"},
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, append(set, withoutMemory, "evaluate.every_epochs=0")...)
			c.Simulate.Workers = 4
			axes := func(helped *[4]int) station.Axes {
				return station.Axes{Parts: 2, Work: func(worker int) core.Work { return &sidestest.Lender{Me: int32(worker), Helped: &helped[worker]} }}
			}
			ranks := c.Simulate.Workers
			if c.Cluster.Placement != "colocate" {
				ranks += c.Cluster.Servers
			}
			res, errs := world(t, c, ranks, func(o *Options) { o.axes = axes(new([4]int)) })
			for i, err := range errs {
				if err != nil {
					t.Fatalf("rank %d: %v", i, err)
				}
			}
			var helped [4]int
			want := res[0].Summary
			sameAsSimulated(t, c, want, axes(&helped))
			if helped[1] != 30 || want.Iterations != 30 {
				t.Errorf("worker 1 helped %d times in %d iterations, want 30", helped[1], want.Iterations)
			}
		})
	}
}

// sameAsSimulated runs a configuration with real gradients in virtual time, and compares.
func sameAsSimulated(t *testing.T, c *configs.Config, want *metrics.Summary, axes station.Axes) {
	t.Helper()
	if g := simulated(t, c, axes); g.ParametersSHA256 != want.ParametersSHA256 || g.Samples != want.Samples ||
		*g.TrainLoss != *want.TrainLoss {
		t.Errorf("simulated %.12s after %d samples with train loss %v, the run %.12s, %d, %v", g.ParametersSHA256,
			g.Samples, *g.TrainLoss, want.ParametersSHA256, want.Samples, *want.TrainLoss)
	}
}

// simulated runs a configuration with real gradients in virtual time.
func simulated(t *testing.T, c *configs.Config, axes station.Axes) *metrics.Summary {
	t.Helper()
	data, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	architecture, err := layout.Architecture(c, data)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.Plan(c, architecture.Params(), c.Cluster.Servers, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	g := &real.Gradients{Set: data, Device: cpu.New(1)}
	got, err := check.Run(sim.Options{Config: c, Plan: plan, Rows: data.Train.Rows(), CheckEvery: 16, Values: g.Values, Axes: axes})
	if err != nil {
		t.Fatal(err)
	}
	return got.Summary
}

// Closed by all partitions, an iteration of partial gradients has the same bits in a run and in virtual time, whoever computed them, and
// even if results are kept.
func TestPartialGradientsHaveTheBitsOfASimulatedRun(t *testing.T) {
	for _, work := range []string{"load: 2", "load: 3, batching: 2, order: staircase, micro: 3", "load: 4, batching: 4"} {
		t.Run(work, func(t *testing.T) {
			c := load(t, withoutMemory, "evaluate.every_epochs=0", "work={policy: partial, "+work+"}", "sync=[{match: '*', scheme: drop}]",
				`faults=[{worker: "*", slow: {kind: exponential, sleep: 1ms}}]`)
			c.Simulate.Workers = 4
			sameAsSimulated(t, c, mustTrain(t, c, c.Simulate.Workers+c.Cluster.Servers).Summary, station.Axes{})
		})
	}
}
