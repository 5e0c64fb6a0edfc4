package workernode

import (
	"fmt"
	"slices"

	"fluentps/internal/comm/wire"
)

// A shard need not be exchanged in every iteration (the local axis: fragments, periods). A shard that is exchanged in
// some iterations only has an exchange clock, which counts its exchanges. Pushes, pulls and replies name this clock,
// and the shard's server and scheme count by it; neither knows of iterations without an exchange. In other iterations
// the shard rests: it is neither pushed nor pulled. Its pieces become ready as always, and the driver decides what
// happens to their gradients.
//
//	iteration    0   1   2   3   4   5
//	shard 0      0   1   2   3   4   5     due in all
//	shard 1      .   .   0   .   .   1     due in every third
//
// The lead shard's replies say when to stop, so a run whose lead shard rests continues until that shard's next
// exchange. A shard cannot move the next exchange of another shard: a scheme that lets a worker skip ahead does so on
// the clock of its own shard.

// exchangeClocks are the exchange clocks of a worker.
type exchangeClocks struct {
	isDue   func(shard int32, iter int64) bool
	current []int64 // per shard: the exchange that is open, or was last
	next    []int64 // per shard: the next exchange, as its server has said
	resting []bool  // per shard: it is not exchanged in this iteration
	passed  []int64 // per shard: in how many iterations before the next one it was due
	joined  []int64 // per shard: the first exchange of a worker that comes back; 0: it did not
}

// SetDue says which shards are exchanged in which iterations. It must be called before the first input. All shards must
// be pulled where they are due: there may be no copies, rounds, grants or work policy. turns are the numbers of
// exchanges that each shard has had already; nil: none.
func (w *Worker) SetDue(of func(shard int32, iter int64) bool, turns []int64) {
	if w.round != nil || w.copies != nil || w.grants.gates != nil || w.work != nil {
		panic(fmt.Sprintf("core: worker %d: exchange clocks do not go with copies, grants, rounds or a work policy", w.me))
	}
	n := len(w.shards)
	w.exchanges = &exchangeClocks{isDue: of, current: make([]int64, n), next: make([]int64, n), resting: make([]bool, n)}
	copy(w.exchanges.next, turns)
	w.exchanges.passed, w.exchanges.joined = slices.Clone(w.exchanges.next), make([]int64, n)
	for s := range w.exchanges.current {
		w.exchanges.current[s] = w.exchanges.next[s] - 1
	}
}

// exchangeIter is the exchange of a shard that is open, or was last. Without exchange clocks it is the iteration.
func (w *Worker) exchangeIter(s int32) int64 {
	if w.exchanges == nil {
		return w.iter
	}
	return w.exchanges.current[s]
}

func (w *Worker) isResting(s int32) bool { return w.exchanges != nil && w.exchanges.resting[s] }

// open begins the exchanges that are due in the worker's iteration.
func (d *exchangeClocks) open(w *Worker) {
	for s := range d.resting {
		d.resting[s] = !d.exchanges(int32(s), w.iter)
		if d.isDue(int32(s), w.iter) {
			d.passed[s]++
		}
		if d.resting[s] {
			w.replies.open--
			continue
		}
		d.current[s] = d.next[s]
		d.next[s]++
	}
}

// reportedClockOf is the clock that the pushes of a shard report as known to the worker.
func (w *Worker) reportedClockOf(s int32) int64 {
	if w.exchanges == nil {
		return w.reportedClock
	}
	return w.shards[s].clock
}

// noteNextIter notes the iteration, or the exchange, that a reply lets the worker into.
func (w *Worker) noteNextIter(m *wire.Header) {
	if w.exchanges == nil {
		w.replies.next = max(w.replies.next, m.Iter)
		return
	}
	w.exchanges.next[m.Shard] = max(w.exchanges.next[m.Shard], m.Iter)
	if w.life > 0 && w.first < 0 {
		w.joinTurns()
	}
}

// joinTurns moves a worker that comes back, when all shards have answered, to the first iteration in which some shard is due for the
// exchange that it was let into. The others may be in the middle of that iteration, and wait for this worker at some shards, while other
// shards have had their exchange of it without this worker: these rest until their next one is due.
func (w *Worker) joinTurns() {
	for s := range w.shards {
		if !w.shards[s].replied {
			return
		}
	}
	d, iter := w.exchanges, w.iter+1
	d.joined = slices.Clone(d.next)
	for ; !d.anyDue(iter); iter++ {
		for s := range d.passed {
			if d.isDue(int32(s), iter) {
				d.passed[s]++
			}
		}
	}
	w.replies.next = max(w.replies.next, iter)
}

// anyDue says whether some shard is exchanged in an iteration.
func (d *exchangeClocks) anyDue(iter int64) bool {
	for s := range d.passed {
		if d.exchanges(int32(s), iter) {
			return true
		}
	}
	return false
}

// exchanges says whether a shard is exchanged in an iteration, which is the next one.
func (d *exchangeClocks) exchanges(s int32, iter int64) bool {
	return d.isDue(s, iter) && d.passed[s] >= d.joined[s]
}

// Rests says whether a shard is not exchanged in the iteration of the exchange that has begun.
func (w *Worker) Rests(s int32) bool { return w.isResting(s) }

// pushedUpTo is what Left tells a server: all exchanges of its shards before this one were pushed.
func (w *Worker) pushedUpTo(server int32) int64 {
	if w.exchanges == nil {
		return w.iter + 1
	}
	least := int64(-1)
	for s := range w.shards {
		if turn := w.exchanges.current[s] + 1; w.plan.Shards[s].Server == server && (least < 0 || turn < least) {
			least = turn
		}
	}
	return max(least, 0)
}

// checkExchanges verifies that a resting shard is neither pulled nor answered.
func (w *Worker) checkExchanges() error {
	if w.exchanges == nil {
		return nil
	}
	for s, rest := range w.exchanges.resting {
		if sh := &w.shards[s]; rest && (sh.pulled || sh.replied) {
			return fmt.Errorf("core: worker %d: shard %d rests in iteration %d but was pulled", w.me, s, w.iter)
		}
	}
	return nil
}
