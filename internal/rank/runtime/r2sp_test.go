package runtime

import (
	"testing"
)

// In the strict order every commit after the first round is N-1 versions stale, on every shard, also with ranks that serve
// and work; and with sleeping workers no slot or alarm blocks a worker for good.
func TestR2SPStalenessIsOneRound(t *testing.T) {
	for _, set := range [][]string{{"cluster.placement=spread"}, {"cluster.placement=colocate"},
		{"faults=[{worker: '*', slow: {sleep: 2ms}}]"}} {
		s := mustTrain(t, load(t,
			append(set, "sync=[{match: '*', scheme: r2sp, skip_after: 0, profile: 3}]", "train.stop={samples: 2400}",
				"cluster.servers=2")...), 6).Summary
		for _, sh := range s.PerShard {
			if most := s.Workers - 1; int(sh.StalenessP50) != most || int(sh.StalenessMax) != most {
				t.Errorf("%v: shard %d is %d versions stale in the middle and %d at most, want %d", set, sh.Shard,
					sh.StalenessP50, sh.StalenessMax, most)
			}
		}
	}
}

// The log names the worker that waits for its turn, and the server that waits for another worker's push.
func TestAStallOfARotationIsExplained(t *testing.T) {
	c := load(t, "sync=[{match: '*', scheme: r2sp, skip_after: 0}]", "faults=[{worker: 2, slow: {sleep: 30s}}]",
		"stall={warn: 100ms, abort: 1h}")
	mustStall(t, "aaaaaa", c, `worker 3 has waited \d+s to start iteration 1; its turn to push to server 0`, `\(r2sp\) waits for worker 2 \(`)
}
