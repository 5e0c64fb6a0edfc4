package train_test

import (
	"fmt"
	"testing"
)

// With partial gradients an iteration that is closed by all partitions has the gradient of bsp, whoever computed them: the same to the bit,
// because a batch is one step here and pushes are folded in order of their owners. With steps of two samples only the
// order of additions differs.
func TestPartialGradientsAreThoseOfBSP(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		set := []string{"cluster={servers: 2, placement: " + placement + "}", "model={name: mlp, layers: [6]}",
			"shards.slice=layer", "train.stop={updates: 12}", withoutMemory}
		ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
		plain := mustTrain(t, load(t, set...), ranks)
		for _, c := range []struct {
			work  string
			slow  bool
			error float64
		}{
			{"load: 1, micro: 8", false, 0},
			{"load: 2, micro: 8", false, 0},
			{"load: 3, micro: 8, order: staircase", true, 0},
			{"load: 4, micro: 8, batching: 3", true, 0},
			{"load: 2, micro: 8, batching: 2", true, 0},
			{"load: 2, micro: 2", true, 1e-5},
		} {
			t.Run(placement+" "+c.work, func(t *testing.T) {
				set := append([]string{fmt.Sprintf("work={policy: partial, %s}", c.work), "sync=[{match: '*', scheme: drop}]"}, set...)
				if c.slow {
					set = append(set, "faults=[{worker: 1, slow: {sleep: 3ms}}]")
				}
				got := mustTrain(t, load(t, set...), ranks)
				if d := distance(plain.Parameters, got.Parameters); d > c.error {
					t.Errorf("a parameter is off by %g, want at most %g", d, c.error)
				}
				if got.Committed() != plain.Committed() {
					t.Errorf("%d samples, want %d", got.Committed(), plain.Committed())
				}
			})
		}
	}
}

// Batches that differ by a sample are computed in the same steps by all, so it does not matter whose copy counts.
func TestCopiesOfUnequalBatchesAreEqual(t *testing.T) {
	set := []string{"cluster={servers: 2, placement: colocate}", "model={name: mlp, layers: [6]}",
		"sync=[{match: '*', scheme: drop}]", withoutMemory,
		"train={batch_global: 127, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 12}}"}
	for _, micro := range []int{0, 32} {
		alone := mustTrain(t, load(t, append(set, fmt.Sprintf("work={policy: partial, load: 1, micro: %d}", micro))...), 4)
		for slow := range 4 {
			got := mustTrain(t, load(t,
				append(set, fmt.Sprintf("work={policy: partial, load: 3, micro: %d}", micro),
					fmt.Sprintf("faults=[{worker: %d, slow: {sleep: 3ms}}]", slow))...), 4)
			if d := distance(alone.Parameters, got.Parameters); d != 0 {
				t.Errorf("micro %d, worker %d slow: a parameter is off by %g", micro, slow, d)
			}
		}
	}
}

// Where fewer partitions are required, a version is the mean of those.
func TestPartialGradientsOfSomePartitions(t *testing.T) {
	got := mustTrain(t, load(t, "cluster={servers: 1}", "work={policy: partial, load: 2, required: 3, micro: 2}",
		"sync=[{match: '*', scheme: drop, required: 3}]", "train.stop={updates: 12}", withoutMemory,
		"faults=[{worker: 1, slow: {sleep: 3ms}}]"), 5)
	if n := got.Committed(); n != 12*3*8 {
		t.Errorf("%d samples, want 12 versions of 3 batches of 8", n)
	}
}
