package runtime

import (
	"fmt"
	"testing"
)

// vap bounds what a worker has in transit in a real run, too: with a bound of 0 fast workers wait for others to read, with
// a large one no worker waits, and the result is as good. Deltas have norms like gradients. All workers sleep, because fast
// workers that compute nothing may finish before the straggler has begun, with no worker to wait for.
func TestVAPHoldsBackByValue(t *testing.T) {
	const slow = "faults=[{worker: 0, slow: {sleep: 1ms}}, {worker: 1, slow: {sleep: 1ms}}, {worker: 2, slow: {sleep: " +
		"1ms}}, {worker: 3, slow: {sleep: 3ms}}]"
	for _, push := range []string{"gradient", "delta"} {
		delayed := map[string]int64{}
		for _, v0 := range []string{"0", "1000"} {
			sync := fmt.Sprintf("sync=[{match: '*', scheme: vap, v0: %s, push: %s}]", v0, push)
			s := trainTogether(t, load(t, sync, slow, "train.stop={samples: 3200}", "train.optimizer={name: sgd, lr: 0.1}")).Summary
			for _, sh := range s.PerShard {
				delayed[v0] += sh.DelayedPulls
				if sh.Dropped > 0 || sh.Pushes != sumIterations(s) {
					t.Errorf("push: %s, v0: %s: shard %d got %d pushes of %d and dropped %d", push, v0, sh.Shard, sh.Pushes, sumIterations(s), sh.Dropped)
				}
			}
		}
		if delayed["0"] == 0 || delayed["1000"] != 0 {
			t.Errorf("push: %s: %d delayed pulls with v0 = 0 and %d with 1000", push, delayed["0"], delayed["1000"])
		}
	}
}
