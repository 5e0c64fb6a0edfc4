package core

import (
	"fmt"

	"fluentps/comm/wire"
)

// A shard need not be exchanged in every iteration (the local axis: fragments, periods). Then it has an exchange clock of its own, which
// counts its exchanges: that is what its pushes, pulls and replies name, and what its server and its scheme count; neither knows of
// iterations that exchange nothing. A shard that rests is neither pushed nor pulled: its pieces become ready as ever, and what becomes of
// their gradients is for whoever computes them to say.
//
//	iteration    0   1   2   3   4   5
//	shard 0      0   1   2   3   4   5     due in all
//	shard 1      .   .   0   .   .   1     due in every third
//
// The lead shard's replies say when to stop, so that a run whose lead shard rests goes on until its next exchange. Where the next exchange
// of a shard is, another one may not say: a scheme that passes a worker by does so by the clock of its own shard.

// dues are the exchange clocks of a worker.
type dues struct {
	of   func(shard int32, iter int64) bool
	turn []int64 // per shard: the exchange that is open, or was last
	next []int64 // per shard: the next one, as its server has said
	rest []bool  // per shard: it is not exchanged in this iteration
}

// SetDue says which shards are exchanged in which iterations. It is called before the first input, and all shards must be pulled where
// they are due: without copies, rounds, grants, and without a policy that gives the worker its work. turns are the exchanges before the
// first of each shard; nil: none.
func (w *Worker) SetDue(of func(shard int32, iter int64) bool, turns []int64) {
	if w.round != nil || w.copies != nil || w.stiles != nil || w.work != nil {
		panic(fmt.Sprintf("core: worker %d: its shards have exchange clocks of their own, and copies, grants, rounds or given work", w.me))
	}
	n := len(w.shards)
	w.due = &dues{of: of, turn: make([]int64, n), next: make([]int64, n), rest: make([]bool, n)}
	copy(w.due.next, turns)
	for s := range w.due.turn {
		w.due.turn[s] = w.due.next[s] - 1
	}
}

// turn is the exchange of a shard that is open, or was last: the iteration, where all shards are exchanged in all.
func (w *Worker) turn(s int32) int64 {
	if w.due == nil {
		return w.iter
	}
	return w.due.turn[s]
}

func (w *Worker) rests(s int32) bool { return w.due != nil && w.due.rest[s] }

// open begins the exchanges that are due in an iteration.
func (d *dues) open(w *Worker) {
	for s := range d.rest {
		if d.rest[s] = !d.of(int32(s), w.iter); d.rest[s] {
			w.open--
			continue
		}
		d.turn[s] = d.next[s]
		d.next[s]++
	}
}

// knownOf is what the pushes of a shard report as the clock that the worker knows of.
func (w *Worker) knownOf(s int32) int64 {
	if w.due == nil {
		return w.known
	}
	return w.shards[s].clock
}

// answeredAt takes the iteration, or the exchange, that a reply lets the worker into.
func (w *Worker) answeredAt(m *wire.Header) {
	if w.due == nil {
		w.next = max(w.next, m.Iter)
		return
	}
	w.due.next[m.Shard] = max(w.due.next[m.Shard], m.Iter)
}

// pushedAt is what a Left tells a server: all exchanges of its shards before this one were pushed.
func (w *Worker) pushedAt(server int32) int64 {
	if w.due == nil {
		return w.iter + 1
	}
	least := int64(-1)
	for s := range w.shards {
		if turn := w.due.turn[s] + 1; w.plan.Shards[s].Server == server && (least < 0 || turn < least) {
			least = turn
		}
	}
	return max(least, 0)
}

// checkDue holds a shard that rests to its rest.
func (w *Worker) checkDue() error {
	if w.due == nil {
		return nil
	}
	for s, rest := range w.due.rest {
		if sh := &w.shards[s]; rest && (sh.pulled || sh.replied) {
			return fmt.Errorf("core: worker %d: shard %d rests in iteration %d, and is pulled", w.me, s, w.iter)
		}
	}
	return nil
}
