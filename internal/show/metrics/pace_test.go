package metrics

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The windows cover all iterations of a run of any length, except for the last ones that do not fill a window, and have their means.
func TestPaceCoversTheRun(t *testing.T) {
	for _, n := range []int{0, 1, 19, 63, 64, 65, 1000, 12345} {
		p := NewPace(4)
		for i := range n {
			p.Add(time.Duration(i))
		}
		whole := int64(len(p.Windows)) * p.Every
		if len(p.Windows) >= paceWindows || int64(n)-whole >= p.Every || int64(n) < whole {
			t.Errorf("%d iterations: %d windows of %d", n, len(p.Windows), p.Every)
		}
		for k, d := range p.Windows {
			if want := time.Duration((2*int64(k)+1)*p.Every-1) / 2; d > want+2 || d < want-2 { // rounded in halves
				t.Fatalf("%d iterations, window %d of %d: %v, want %v", n, k, p.Every, d, want)
			}
		}
		if want := min(max(0, n-1), paceFirstMax); len(p.First) != want || want > 0 && p.First[0] != 1 {
			t.Errorf("%d iterations: %d single ones, want %d from the second on", n, len(p.First), want)
		}
		if p.seen(20) != (n > 20 || n == 20) {
			t.Errorf("%d iterations: seen %v", n, p.seen(20))
		}
	}
	if few := NewPace(100_000); few.firstMax != paceFirstMin {
		t.Errorf("of 100,000 workers %d single iterations each", few.firstMax)
	}
}

func drawTimes(t *rapid.T) [][]time.Duration {
	workers, n := rapid.IntRange(1, 6).Draw(t, "workers"), rapid.IntRange(1, 30).Draw(t, "iterations")
	first := make([][]time.Duration, workers)
	for w := range first {
		for range n {
			first[w] = append(first[w], time.Duration(rapid.Int64Range(1, 20).Draw(t, "time")))
		}
	}
	return first
}

// The twin follows the rule from one moment to the next: every worker that may start starts.
func TestReplayLeadFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawTimes(t)
		lead := rapid.IntRange(0, 8).Draw(t, "lead")
		done, until := make([]int, len(first)), make([]time.Duration, len(first)) // until: -1 while the worker waits
		for w := range until {
			until[w] = -1
		}
		now := time.Duration(0)
		for ; ; now++ {
			for w := range first {
				if until[w] == now {
					until[w] = -1
					done[w]++
				}
			}
			least := done[0]
			for _, c := range done {
				least = min(least, c)
			}
			if least == len(first[0]) {
				break
			}
			for w := range first {
				if until[w] < 0 && done[w] < len(first[w]) && done[w]-least <= lead {
					until[w] = now + first[w][done[w]]
				}
			}
		}
		if got := replayLead(first, lead); got != now {
			t.Fatalf("a lead of %d takes %d, want %d: %v", lead, got, now, first)
		}
	})
}

// With all pushes required, drop is bsp. With fewer, the mean iteration is no longer than the longest iteration of any worker.
func TestReplayRequiredOfAllIsBSP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawTimes(t)
		n := time.Duration(len(first[0]))
		if got, want := replayRequired(first, len(first)), replayLead(first, 0)/n; got != want {
			t.Fatalf("%d an iteration, want %d", got, want)
		}
		required := rapid.IntRange(1, len(first)).Draw(t, "required")
		if got := replayRequired(first, required); got < 1 || got > 20 {
			t.Fatalf("an iteration of %d pushes takes %d", required, got)
		}
	})
	steady := [][]time.Duration{{2, 2, 2, 2}, {2, 2, 2, 2}, {10, 10, 10, 10}}
	if got := replayRequired(steady, 2); got != 2 {
		t.Errorf("without the slow one an iteration takes %d, want 2", got)
	}
}
