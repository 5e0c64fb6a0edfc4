package train_test

import (
	"slices"
	"testing"

	"fluentps/internal/core"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station"
)

// A run whose time is so long that nothing is left out has the samples and the iterations of one without steps, and
// its parameters except for the order of additions.
func TestTimedRunsWithoutALimitEqualFixed(t *testing.T) {
	for _, scheme := range []string{"bsp", "ssp, staleness: 0"} {
		for _, placement := range []string{"spread", "colocate"} {
			ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
			set := []string{"cluster={servers: 2, placement: " + placement + "}", "model={name: mlp, layers: [6]}",
				"sync=[{match: '*', scheme: " + scheme + "}]"}
			plain := mustTrain(t, load(t, set...), ranks)
			for _, policy := range []string{"{policy: anytime, time: 1h, micro: 3}",
				"{policy: dropcompute, time: 1h, micro: 3}", "{policy: dropcompute, profile: 100}"} {
				got := mustTrain(t, load(t, append(set, "work="+policy)...), ranks)
				if got.Committed() != plain.Committed() || got.Pushes() != plain.Pushes() {
					t.Errorf("%s, %s, %s: %d samples in %d iterations, want %d in %d", scheme, placement, policy,
						got.Committed(), got.Pushes(), plain.Committed(), plain.Pushes())
				}
				if d := distance(plain.Parameters, got.Parameters); scheme == "bsp" && d > 1e-5 {
					t.Errorf("%s, %s, %s: a parameter is off by %g, want a little at most: sums are added up in another order",
						scheme, placement, policy, d)
				}
			}
		}
	}
}

// A time that is over after the first step leaves one step of each batch, under every scheme that is allowed: no push
// is empty, and nothing is divided by zero samples.
func TestTimedRunsHaveOneStepAtLeast(t *testing.T) {
	const updates = 12
	for _, scheme := range []string{"bsp", "asp", "ssp, staleness: 1", "dssp", "drop, required: 3", "quorum",
		"softsync, q: 2", "rennala", "ringmaster"} {
		for _, policy := range []string{"anytime", "dropcompute"} {
			set := []string{"cluster={servers: 1, placement: spread}", "sync=[{match: '*', scheme: " + scheme + "}]",
				"train.stop={updates: 12}", "work={policy: " + policy + ", time: 1ns, micro: 3}"}
			got := mustTrain(t, load(t, set...), 5)
			n := got.Committed()
			if scheme == "bsp" && n != updates*4*3 {
				t.Errorf("%s under %s: %d samples, want 3 of each push", policy, scheme, n)
			}
			if n == 0 || n%3 != 0 || slices.ContainsFunc(got.Parameters, func(v float32) bool { return v-v != 0 }) {
				t.Errorf("%s under %s: %d samples, parameters %v", policy, scheme, n, got.Parameters[:3])
			}
		}
	}
}

// halver computes whole batches of worker 0 and half of the others'.
type halver struct{ me int32 }

func (h halver) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	if ev.Kind != core.Starting || h.me == 0 {
		return out
	}
	own := ev.Task
	own.To = 4 // of 8
	return append(out, core.Order{Kind: core.Assign, Task: own})
}

// Where each push is a version, one with half of the samples moves the parameters half as far: the sum of the steps
// of all pushes on the same parameters is that of the samples.
func TestAPushWithHalfOfTheSamplesWeighsHalf(t *testing.T) {
	moved := func(work string, policy func(worker int) core.Work) float64 {
		set := []string{"cluster={servers: 1, placement: spread}", withoutMemory, "model={name: softmax}",
			"sync=[{match: '*', scheme: asp}]", "train.stop={updates: 1}", "train.optimizer={name: sgd, lr: 0.001}", work}
		start := mustTrain(t, load(t, append(set, "train.optimizer={name: sgd, lr: 1e-30}")...), 2).Parameters
		got := sidestest.Train(t, load(t, set...), 2, sidestest.Options{Axes: func(int) station.Axes { return station.Axes{Work: policy} }})
		sum := 0.0
		for i, x := range got.Parameters {
			d := float64(x - start[i])
			sum += d * d
		}
		return sum
	}
	whole := moved("work={policy: anytime, time: 1h}", func(int) core.Work { return halver{0} })
	half := moved("work={policy: anytime, time: 1h}", func(int) core.Work { return halver{1} })
	unweighed := moved("work={policy: fixed}", func(int) core.Work { return halver{1} })
	// the gradient of four samples is not that of eight, so the lengths agree roughly
	if r := half / unweighed; r < 0.2499 || r > 0.2501 {
		t.Errorf("half of the samples move the parameters by %g of what they would with the weight of a whole push, in "+
			"squares; want a quarter (whole: %g)", r, whole)
	}
}
