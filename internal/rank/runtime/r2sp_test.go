package runtime

import (
	"fmt"
	"testing"
)

// One worker under r2sp is sequential SGD bit for bit (invariant 5 of section 1.3 of the notes on stragglers [R]), over any
// number of servers and of rules that share the rotation.
func TestR2SPOfOneWorkerIsSequentialToTheBit(t *testing.T) {
	base := []string{"train.stop.updates=40", "train.optimizer={name: momentum, lr: 0.05, momentum: 0.9}", "model={name: mlp, layers: [16]}"}
	hash := func(ranks int, sync string) string {
		return mustTrain(t, load(t, append(base, fmt.Sprintf("cluster.servers=%d", ranks-1), "sync="+sync)...), ranks).Summary.ParametersSHA256
	}
	want := hash(2, "[{match: '*', scheme: bsp}]")
	for _, sync := range []string{"[{match: '*', scheme: r2sp}]",
		"[{match: '*.bias', scheme: r2sp}, {match: '*', scheme: r2sp}]",
		"[{match: '*.bias', scheme: bsp}, {match: '*', scheme: r2sp, skip_after: 0}]"} {
		for _, ranks := range []int{2, 4} {
			if got := hash(ranks, sync); got != want {
				t.Errorf("%s over %d servers: parameters %.12s, bsp %.12s", sync, ranks-1, got, want)
			}
		}
	}
}

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
