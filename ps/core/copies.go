package core

import (
	"fmt"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// Copies that a worker keeps (SSP as implemented in Petuum Bösen, and its SSPPush [C]; whole shards for their rows).
//
// A copy has a clock: v when its server sent it. A worker starts iteration c on a copy of clock c - s or newer. A cached
// copy that is too old is pulled; a published one is waited for. Either way the worker's own updates are in its copy
// (read-my-writes): it adds each, with the weight that the server commits it with, as soon as no kernel reads the
// parameters any more. A reply has them all, for the server answers no pull before the push ahead of it has landed and
// was committed (order at the gate); so it may overwrite the copy. A published version says how many it has; the worker
// keeps those that it may lack, the last s+1, and adds them again:
//
//	Worker                                                Server
//	the last piece let go: Keep, AddLocal ──────────────► Pushed ─► scheme: v moves: Publish
//	Arrived Publish: ExpectBeside ◄────────────────────── Reply (header and pieces), if the last one was Taken
//	landed, and no kernel reads the shard: Adopt, AddLocal of each kept push that it lacks, Send Taken
//
// While pieces of the first reply are on their way, the worker expects none beside the arena: it could not tell which came.
// That happens where others push while one that came back is being answered.
//
// The lead shard's stop comes with a version, and a worker with a copy may start s+1 iterations without one. So when its budget
// is nearly used up the lead shard says Ask: from then on its copies are pulled before every iteration (budget.go).
// A worker that leaves is Done when all that is on its way to it has landed: Ended tells how many versions were published to it.

// Copy says how a worker keeps its copy of a shard.
type Copy struct {
	Kind  scheme.Copies
	Bound int64   // s
	Share float64 // of one push in what its commit adds
}

// CopyOf is the Copy that a scheme with these keys makes.
func CopyOf(name string, c scheme.Common, p scheme.Params, workers int) Copy {
	e, ok := scheme.Lookup(name)
	if !ok || e.CopiesOf(p) == scheme.Pulled {
		return Copy{}
	}
	s, _ := e.LeadMax(p)
	return Copy{Kind: e.CopiesOf(p), Bound: s, Share: c.Share(workers)}
}

// ownCopy is a worker's copy of one shard.
type ownCopy struct {
	Copy
	settled bool // the copy will do for the next iteration, or its pull is out
	asks    bool // the server wants it to be pulled before every iteration: the budget is nearly used up

	// Published copies alone:
	beside  bool        // a version is beside the arena, or on its way there
	head    wire.Header // of it
	landed  int         // pieces of it that are there
	heads   int64       // versions whose headers came
	end     int64       // how many come, once Ended said so; -1 before
	weights []float64   // per slot used: 1/samples of the push kept there; iteration i is in slot i mod (s+1)
}

// KeepCopies makes the worker keep copies of the shards whose rules ask for it. It is called before the first input.
func (w *Worker) KeepCopies(copyOf func(rule int) Copy) {
	for i := range w.plan.Shards {
		c := copyOf(w.plan.Shards[i].Rule)
		if c.Kind == scheme.Pulled {
			continue
		}
		if w.copies == nil {
			w.copies = make([]ownCopy, len(w.shards))
		}
		w.copies[i] = ownCopy{Copy: c, end: -1}
	}
}

// kind says how the copy of a shard is renewed.
func (w *Worker) kind(s int32) scheme.Copies {
	if w.copies == nil {
		return scheme.Pulled
	}
	return w.copies[s].Kind
}

// renew is called when the push of a shard was let go: its parameters are read no more in this iteration.
func (w *Worker) renew(s int32, out []Effect) []Effect {
	if w.round != nil {
		return out // pulled behind the barrier
	}
	switch w.kind(s) {
	case scheme.Cached:
		if w.copies[s].asks || w.shards[s].clock < w.iter+1-w.copies[s].Bound {
			return w.pull(s, out)
		}
		w.Cached[s]++
		return w.settle(s, w.addLocal(s, -1, w.iter, out))
	case scheme.Published:
		c := &w.copies[s]
		if c.asks && !c.beside {
			return w.pull(s, out)
		}
		slot := c.slot(w.iter)
		for int(slot) >= len(c.weights) { // who comes back does not begin with slot 0
			c.weights = append(c.weights, 0)
		}
		c.weights[slot] = 1 / float64(w.head.Samples)
		out = append(out, Effect{Kind: Keep, Shard: s, Slot: slot})
		if c.beside && c.landed == len(w.plan.Shards[s].Pieces) {
			return w.adopt(s, out)
		}
		return w.settle(s, w.addLocal(s, -1, w.iter, out))
	}
	return w.pull(s, out)
}

func (c *ownCopy) slot(iter int64) int32 { return int32(iter % (c.Bound + 1)) }

// addLocal adds the worker's own push of iteration iter to its copy: of the gradient arena, or of a slot.
func (w *Worker) addLocal(s, slot int32, iter int64, out []Effect) []Effect {
	c := &w.copies[s]
	weight := 1 / float64(w.head.Samples)
	if slot >= 0 {
		weight = c.weights[slot]
	}
	w.shards[s].version++
	return append(out, Effect{Kind: AddLocal, Shard: s, Slot: slot, Iter: iter, Scale: c.Share, Weight: weight})
}

// settle ends the wait for a shard if its copy will do for the next iteration.
func (w *Worker) settle(s int32, out []Effect) []Effect {
	c := &w.copies[s]
	switch {
	case c.settled || w.shards[s].pulled:
		return out
	case w.shards[s].clock < w.iter+1-c.Bound:
		if c.asks && !c.beside { // no newer one is published
			return w.pull(s, out)
		}
		return out
	}
	c.settled = true
	w.readableCopy(s)
	w.open--
	if w.state == Waiting {
		w.last = s
	}
	return out
}

// tooOld says whether the worker waits for a version of a published shard.
func (w *Worker) tooOld(s int32) bool {
	return w.kind(s) == scheme.Published && w.state == Waiting && w.iter >= 0 && !w.copies[s].settled && !w.shards[s].pulled
}

// published takes the header of a published version, or the end of them.
func (w *Worker) published(in Input, out []Effect) []Effect {
	m := in.Msg
	w.must(m.Worker == w.me && w.kind(m.Shard) == scheme.Published, in)
	c := &w.copies[m.Shard]
	if m.Kind == wire.Ended {
		w.must(w.state == Finished && c.end < 0, in)
		c.end = m.Iter
		return w.drained(out)
	}
	w.must(!c.beside, in)
	c.beside, c.head, c.landed = true, m, 0
	c.asks = c.asks || m.Flags&wire.Ask != 0
	c.heads++
	w.clock = max(w.clock, m.Clock)
	w.stop = w.stop || m.Flags&wire.Stop != 0
	if !w.isWhole(m.Shard) {
		return out
	}
	return w.advance(w.takeBeside(m.Shard, out))
}

// isWhole says whether nothing is missing of a reply to the shard's pull.
func (w *Worker) isWhole(s int32) bool {
	sh := &w.shards[s]
	return !sh.pulled || sh.replied && sh.landed == len(w.plan.Shards[s].Pieces)
}

// takeBeside receives the version whose header came.
func (w *Worker) takeBeside(s int32, out []Effect) []Effect {
	if w.isNear(s) { // it is there, in the server's memory
		return w.allBeside(s, out)
	}
	return append(out, Effect{Kind: ExpectBeside, Shard: s, To: w.plan.Shards[s].Server})
}

// landsBeside says whether a piece of the shard belongs to a published version: all do but those of the first reply.
func (w *Worker) landsBeside(s int32) bool {
	return w.kind(s) == scheme.Published && w.copies[s].beside && w.isWhole(s)
}

func (w *Worker) landedBeside(s int32, out []Effect) []Effect {
	c := &w.copies[s]
	n := len(w.plan.Shards[s].Pieces)
	if c.landed++; c.landed < n {
		return out
	}
	return w.advance(w.allBeside(s, out))
}

// allBeside takes note that all of a published version is there.
func (w *Worker) allBeside(s int32, out []Effect) []Effect {
	n := len(w.plan.Shards[s].Pieces)
	w.copies[s].landed = n
	switch {
	case w.state == Finished:
		return w.drained(out)
	case (w.shards[s].gone == n || w.state == Waiting) && !w.beingRead(s):
		return w.adopt(s, out)
	}
	return out
}

// adopt makes the version beside the arena the copy, and adds what of its own it lacks.
func (w *Worker) adopt(s int32, out []Effect) []Effect {
	c, sh := &w.copies[s], &w.shards[s]
	m := c.head
	c.beside = false
	sh.version, sh.clock = m.Version, m.Clock
	if w.isNear(s) {
		out = append(out, w.read(m))
	} else {
		out = append(out, Effect{Kind: Adopt, Shard: s})
	}
	for i := max(m.Iter, w.first); i <= w.iter; i++ {
		out = w.addLocal(s, c.slot(i), i, out)
	}
	taken := wire.Header{Kind: wire.Taken, Worker: w.me, Shard: s, Version: m.Version}
	out = append(out, Effect{Kind: Send, To: w.plan.Shards[s].Server, Msg: taken})
	return w.settle(s, out)
}

// drained ends the worker that has left, when nothing is on its way to it any more.
func (w *Worker) drained(out []Effect) []Effect {
	for s := range w.copies {
		c := &w.copies[s]
		if c.Kind == scheme.Published && (c.heads != c.end || c.beside && c.landed < len(w.plan.Shards[s].Pieces)) {
			return out
		}
	}
	w.must(!w.done, Input{})
	w.done = true
	return append(out, Effect{Kind: Done})
}

// checkCopies holds the copies to what Bösen's clients promise: what is read at clock c has clock c - s or newer.
func (w *Worker) checkCopies() error {
	for s := range w.copies {
		c, sh := &w.copies[s], &w.shards[s]
		switch {
		case c.Kind == scheme.Pulled:
		case w.state == Computing && sh.gone == 0 && sh.clock < w.iter-c.Bound && w.iter > w.first: // at first another shard may send it on
			return fmt.Errorf("core: worker %d computes %d on a copy of shard %d of clock %d; the bound is %d", w.me, w.iter, s, sh.clock, c.Bound)
		case c.Kind == scheme.Published && c.beside && w.iter+1-max(c.head.Iter, w.first) > c.Bound+1:
			return fmt.Errorf("core: worker %d has pushed %d iterations and keeps %d; a version of shard %d has %d of them", w.me, w.iter+1, c.Bound+1, s, c.head.Iter)
		}
	}
	return nil
}

// CopyBytes is what a worker needs for its copies beside the parameters: a version that lands and the pushes it keeps.
func CopyBytes(plan *shard.Plan, copyOf func(rule int) Copy) int64 {
	var n int64
	for i := range plan.Shards {
		if c := copyOf(plan.Shards[i].Rule); c.Kind == scheme.Published {
			n += plan.Shards[i].Bytes() * (c.Bound + 2)
		}
	}
	return n
}
