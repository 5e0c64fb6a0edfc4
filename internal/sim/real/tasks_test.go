package real

import (
	"math"
	"testing"

	"fluentps/internal/sim/simtest"
)

// A run whose samples all count, computed by whomever, ends with the parameters of plain bsp, except for the order of sums; and the run
// folds as many samples.
func TestTasksTrainLikeBSP(t *testing.T) {
	for name, c := range map[string]struct {
		policy string // "": every iteration of worker 0 is shared with worker 1
		set    []string
	}{
		"softmax":        {},
		"mlp, 3 servers": {"", []string{"cluster.servers=3", "model={name: mlp, layers: [16, 8]}", "shards.max_bytes=256B"}},
		"by layer, priority": {"",
			[]string{"cluster.servers=2", "model={name: mlp, layers: [16, 8]}", "shards={slice: layer, max_bytes: 256B}",
				"send={order: priority, window: 512B}"}},
		"adam, colocate": {"", []string{"train.optimizer={name: adam, lr: 0.001}", "cluster.servers=2", "cluster.placement=colocate"}},
		"flexrr":         {"work={policy: flexrr, micro: 1}", []string{"faults=[{worker: 1, slow: {factor: 4}}]", "cluster.servers=2"}},
		"flexrr, one request": {"work={policy: flexrr, micro: 1, help: {first: 0, helpers: 3}}",
			[]string{"faults=[{worker: 1, slow: {factor: 4}}]"}},
		"dropcompute that waits": {"work={policy: dropcompute, time: 1h, micro: 3}", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			plain := realOptions(t, c.set...)
			o := plain
			if c.policy != "" {
				o = realOptions(t, append(c.set, c.policy)...)
			} else {
				o.Axes = simtest.LendFrom(3)
			}
			got, want := runReal(t, o), runReal(t, plain)
			worst := 0.0
			for i, x := range want.Parameters {
				worst = max(worst, math.Abs(float64(got.Parameters[i]-x)))
			}
			if worst == 0 || worst > 1e-5 {
				t.Errorf("a parameter is off by %g, want a little: sums are added up in another order", worst)
			}
			if got.Summary.Samples != want.Summary.Samples || got.Summary.Iterations != want.Summary.Iterations {
				t.Errorf("%d samples in %d iterations, want %d in %d", got.Summary.Samples, got.Summary.Iterations,
					want.Summary.Samples, want.Summary.Iterations)
			}
			if text := got.Summary.Work; c.policy != "" && text != o.Config.Work.Policy {
				t.Errorf("the summary names policy %q, want %q", text, o.Config.Work.Policy)
			}
		})
	}
}
