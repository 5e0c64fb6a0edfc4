package sim_test

import (
	"testing"
	"time"

	"fluentps/internal/sim/simtest"
)

// Workers start together, and the servers know no times. After ten rounds at most, the rotations of several servers follow each
// other so that each round takes what R2SP.md derives, within a tenth. Nobody misses a turn.
func TestR2SPSettlesInTenRounds(t *testing.T) {
	for _, s := range []int{2, 3, 4} {
		for _, n := range []int{2, 4, 8} {
			for _, c := range []int{1, 3} {
				for _, overlap := range []bool{false, true} {
					k := contention{n: n, s: s, l: 4 * s, c: time.Duration(c) * 90 * time.Millisecond, x: 90 * time.Millisecond}
					ends := k.ends(t, "r2sp", overlap)
					settled := len(ends[0])
					for settled > 1 && (ends[0][settled-1]-ends[0][settled-2]).Seconds() <= 1.1*k.needs(overlap) {
						settled--
					}
					if settled > 10 {
						t.Errorf("S=%d N=%d C=%dx overlap=%v: round %d takes %.4f s, want %.4f", s, n, c, overlap, settled-1,
							(ends[0][settled-1] - ends[0][settled-2]).Seconds(), k.needs(overlap))
					}
				}
			}
		}
	}
}

// The same with 5 % of jitter, over links that are hardly used and over full ones: the next ten rounds take what the formula says for
// computing without jitter, within a tenth.
func TestR2SPSettlesInTenRoundsWithJitter(t *testing.T) {
	for _, s := range []int{2, 4} {
		for _, n := range []int{4, 8} {
			for _, x := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond} {
				need := contention{n: n, s: s, c: time.Second, x: x}.needs(false)
				for seed := uint64(1); seed <= 3; seed++ {
					from, r := starts(t,
						simtest.Setting{Workers: n, Servers: s, Scheme: "r2sp", Iterations: 22, Bytes: int64(1e9 * x.Seconds()), Compute: "1s", Seed: seed,
							Set: append(simtest.Noisy(time.Second, 0.05), "simulate.network.bandwidth=1GB")})
					took, missed := (from[0][20]-from[0][10]).Seconds()/10, r.Summary.PerShard[0].MissedTurns
					if took > 1.1*need || missed > 0 {
						t.Errorf("S=%d N=%d x=%v seed %d: %.3f s a round after the tenth, want %.3f; %d turns missed", s, n, x, seed, took, need, missed)
					}
				}
			}
		}
	}
}
