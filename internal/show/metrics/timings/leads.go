package timings

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// Leads says from the records of a run which iterations all workers had completed when.
//
// The instants are chosen so that a lead is never above what the servers saw. A worker starts an iteration after the answer that let it go,
// and an answer follows the pushes that it counts. So a start is compared with the instants at which the last gradients began to leave,
// which precede these pushes, and never with the ends of iterations: a worker that loses its processor records its end late.
type Leads struct {
	iters []int64         // that occurred, in order
	done  []time.Duration // when the last worker had completed iters[i] and all before
	slack time.Duration   // by which the times of two workers may differ from one clock
}

// LeadsOf reads the iterations of all workers, whose clocks have each an error of at most bound; 0: one clock.
func LeadsOf(iterations [][]Iteration, bound time.Duration) *Leads {
	last := map[int64]time.Duration{}
	for _, all := range iterations {
		for i := range all {
			last[all[i].Iter] = max(last[all[i].Iter], all[i].Leaves())
		}
	}
	l := &Leads{iters: slices.Sorted(maps.Keys(last)), slack: 2 * bound}
	at := time.Duration(0)
	for _, i := range l.iters {
		at = max(at, last[i])
		l.done = append(l.done, at)
	}
	return l
}

// End is when all workers had completed all iterations; 0: there are none.
func (l *Leads) End() time.Duration {
	if len(l.done) == 0 {
		return 0
	}
	return l.done[len(l.done)-1]
}

// Of is how many iterations a worker that starts one is ahead of the slowest, at least: what happened within the error of the clocks
// counts as completed.
func (l *Leads) Of(it *Iteration) int64 {
	mine, _ := slices.BinarySearch(l.iters, it.Iter)
	slowest := sort.Search(len(l.done), func(k int) bool { return l.done[k] > it.Start+l.slack })
	return int64(max(0, mine-slowest))
}

// Max is the largest lead of any worker.
func (l *Leads) Max(iterations [][]Iteration) (most int64) {
	for _, all := range iterations {
		for i := range all {
			most = max(most, l.Of(&all[i]))
		}
	}
	return most
}
