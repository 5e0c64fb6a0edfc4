package servernode

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
)

// The fastest worker is the one with the largest speed, after any pushes and departures.
func TestTheFastestWorkerIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "workers")
		tally, now := newTally(n), int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w := int32(rapid.IntRange(0, n-1).Draw(t, "worker"))
			if rapid.IntRange(0, 4).Draw(t, "leaves") == 0 {
				tally.setSpeed(w, 0)
			} else {
				tally.repliedAt[w] = now
				now += rapid.Int64Range(1, 9).Draw(t, "took")
				tally.landed(&wire.Header{Worker: w, Samples: rapid.Int64Range(1, 9).Draw(t, "samples")}, now)
			}
			if got, want := tally.speed[tally.fastest], slices.Max(tally.speed); got != want {
				t.Fatalf("the fastest is worker %d with %v of %v", tally.fastest, got, tally.speed)
			}
		}
	})
}
