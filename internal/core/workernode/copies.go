package workernode

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/ps/scheme"
)

// Copies that a worker keeps (SSP as implemented in Petuum Bösen, and its SSPPush [C]; here the unit is a shard, there
// a row).
//
// A copy has a clock: v when its server sent it. A worker starts iteration c on a copy of clock c - s or newer. A
// cached copy that is too old is pulled. For a published copy the worker waits for the next version. Either way the
// worker's own updates are in its copy (read-my-writes): the worker adds each as soon as no kernel reads the
// parameters, with the weight that the server commits it with. A reply to a pull contains all of them, because the
// server answers no pull before the push ahead of it has landed and was committed (order at the gate). So the reply may
// overwrite the copy. A published version says how many of the worker's updates it contains. The worker keeps the last
// s+1 pushes, which the version may lack, and adds those that it lacks:
//
//	Worker                                                Server
//	last piece released: Keep, AddLocal ────────────────► Pushed ─► scheme: v moves: Publish
//	Arrived Publish: ExpectBeside ◄────────────────────── Reply (header and pieces), if the last one was Taken
//	landed, and no kernel reads the shard: Adopt, AddLocal of each kept push that it lacks, Send Taken
//
// While pieces of the first reply are in flight, the worker expects no version beside the arena: it could not tell the
// pieces apart. This happens where others push while the server answers a worker that has come back.
//
// The lead shard says stop along with a version, and a worker with a copy may start s+1 iterations without a new
// version. So when the budget is nearly used up the lead shard says Ask: from then on its copies are pulled before
// every iteration (servernode/stop.go). A worker that has left is Done when everything in flight to it has landed: Ended tells
// it how many versions were published to it.

// ownCopy is a worker's copy of one shard.
type ownCopy struct {
	inturn.Copy
	settled  bool // the copy is good enough for the next iteration, or was pulled
	mustPull bool // the server says: pull before every iteration, for the budget is nearly used up

	// For published copies only:
	beside          bool        // a version is beside the arena, or in flight to that place
	head            wire.Header // of that version
	landed          int         // pieces of that version that have landed
	headersReceived int64       // published versions whose headers have arrived
	versionsTotal   int64       // published versions that the server sent in all, as Ended says; -1 before
	weights         []float64   // per slot: 1/samples of the push kept there; iteration i is in slot i mod (s+1)
}

// KeepCopies makes the worker keep copies of the shards whose rules ask for it. It must be called before the first
// input.
func (w *Worker) KeepCopies(copyOf func(rule int) inturn.Copy) {
	for i := range w.plan.Shards {
		c := copyOf(w.plan.Shards[i].Rule)
		if c.Kind == scheme.Pulled {
			continue
		}
		if w.copies == nil {
			w.copies = make([]ownCopy, len(w.shards))
		}
		w.copies[i] = ownCopy{Copy: c, versionsTotal: -1}
	}
}

// kind says how the copy of a shard is renewed.
func (w *Worker) kind(s int32) scheme.Copies {
	if w.copies == nil {
		return scheme.Pulled
	}
	return w.copies[s].Kind
}

// refreshShard is called when the send policy has released the push of a shard, so that its parameters are read no more
// in this iteration.
func (w *Worker) refreshShard(s int32, out []core.Effect) []core.Effect {
	if w.round != nil || w.pullsAhead() {
		return out // in rounds the pull follows the barrier; a worker that pulls ahead has done so
	}
	switch w.kind(s) {
	case scheme.Cached:
		if w.copies[s].mustPull || w.shards[s].clock < w.iter+1-w.copies[s].Bound {
			return w.pull(s, out)
		}
		w.Counts.Cached[s]++
		return w.settle(s, w.addLocal(s, -1, w.iter, out))
	case scheme.Published:
		c := &w.copies[s]
		if c.mustPull && !c.beside {
			return w.pull(s, out)
		}
		slot := c.slot(w.iter)
		for int(slot) >= len(c.weights) { // a worker that comes back does not begin with slot 0
			c.weights = append(c.weights, 0)
		}
		c.weights[slot] = 1 / float64(w.head.Samples)
		out = append(out, core.Effect{Kind: core.Keep, Shard: s, Slot: slot})
		if c.beside && c.landed == len(w.plan.Shards[s].Pieces) {
			return w.adopt(s, out)
		}
		return w.settle(s, w.addLocal(s, -1, w.iter, out))
	}
	return w.pull(s, out)
}

func (c *ownCopy) slot(iter int64) int32 { return int32(iter % (c.Bound + 1)) }

// addLocal adds the worker's own push of iteration iter to its copy, from a slot, or from the gradient arena if slot is
// -1.
func (w *Worker) addLocal(s, slot int32, iter int64, out []core.Effect) []core.Effect {
	c := &w.copies[s]
	weight := 1 / float64(w.head.Samples)
	if slot >= 0 {
		weight = c.weights[slot]
	}
	w.shards[s].version++
	return append(out, core.Effect{Kind: core.AddLocal, Shard: s, Slot: slot, Iter: iter, Scale: c.Share, Weight: weight})
}

// settle ends the wait for a shard if its copy is good enough for the next iteration.
func (w *Worker) settle(s int32, out []core.Effect) []core.Effect {
	c := &w.copies[s]
	switch {
	case c.settled || w.shards[s].pulled:
		return out
	case w.shards[s].clock < w.iter+1-c.Bound:
		if c.mustPull && !c.beside { // no newer version will be published
			return w.pull(s, out)
		}
		return out
	}
	c.settled = true
	w.noteCopyReady(s)
	w.replies.open--
	if w.state == core.Waiting {
		w.replies.last = s
	}
	return out
}

// awaitsVersion says whether the worker waits for a newer version of a published shard.
func (w *Worker) awaitsVersion(s int32) bool {
	return w.kind(s) == scheme.Published && w.state == core.Waiting && w.iter >= 0 && !w.copies[s].settled && !w.shards[s].pulled
}

// published handles the header of a published version, or the message that no more follow.
func (w *Worker) published(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	w.must(m.Worker == w.me && w.kind(m.Shard) == scheme.Published, in)
	c := &w.copies[m.Shard]
	if m.Kind == wire.Ended {
		w.must(w.state == core.Finished && c.versionsTotal < 0, in)
		c.versionsTotal = m.Iter
		return w.finishIfDrained(out)
	}
	w.must(!c.beside, in)
	c.beside, c.head, c.landed = true, m, 0
	c.mustPull = c.mustPull || m.Flags&wire.Ask != 0
	c.headersReceived++
	w.replies.clock = max(w.replies.clock, m.Clock)
	w.replies.stop = w.replies.stop || m.Flags&wire.Stop != 0
	if !w.replyIsComplete(m.Shard) {
		return out
	}
	return w.advance(w.receiveBeside(m.Shard, out))
}

// replyIsComplete says whether nothing is missing of the reply to the shard's pull.
func (w *Worker) replyIsComplete(s int32) bool {
	sh := &w.shards[s]
	return !sh.pulled || sh.replied && sh.landed == len(w.plan.Shards[s].Pieces)
}

// receiveBeside receives the version whose header has arrived.
func (w *Worker) receiveBeside(s int32, out []core.Effect) []core.Effect {
	if w.isNear(s) { // the version is in the server's memory already
		return w.besideComplete(s, out)
	}
	return append(out, core.Effect{Kind: core.ExpectBeside, Shard: s, To: w.plan.Shards[s].Server})
}

// landsBeside says whether a piece of the shard belongs to a published version: all pieces do except those of the first
// reply.
func (w *Worker) landsBeside(s int32) bool {
	return w.kind(s) == scheme.Published && w.copies[s].beside && w.replyIsComplete(s)
}

func (w *Worker) landedBeside(s int32, out []core.Effect) []core.Effect {
	c := &w.copies[s]
	n := len(w.plan.Shards[s].Pieces)
	if c.landed++; c.landed < n {
		return out
	}
	return w.advance(w.besideComplete(s, out))
}

// besideComplete is called when a published version has landed completely.
func (w *Worker) besideComplete(s int32, out []core.Effect) []core.Effect {
	n := len(w.plan.Shards[s].Pieces)
	w.copies[s].landed = n
	switch {
	case w.state == core.Finished:
		return w.finishIfDrained(out)
	case (w.shards[s].released == n || w.state == core.Waiting) && !w.beingRead(s):
		return w.adopt(s, out)
	}
	return out
}

// adopt makes the version beside the arena the copy, and adds the worker's own updates that it lacks.
func (w *Worker) adopt(s int32, out []core.Effect) []core.Effect {
	c, sh := &w.copies[s], &w.shards[s]
	m := c.head
	c.beside = false
	sh.version, sh.clock = m.Version, m.Clock
	if w.isNear(s) {
		out = append(out, w.readEffect(m))
	} else {
		out = append(out, core.Effect{Kind: core.Adopt, Shard: s})
	}
	for i := max(m.Iter, w.first); i <= w.iter; i++ {
		out = w.addLocal(s, c.slot(i), i, out)
	}
	taken := wire.Header{Kind: wire.Taken, Worker: w.me, Shard: s, Version: m.Version}
	out = append(out, core.Effect{Kind: core.Send, To: w.plan.Shards[s].Server, Msg: taken})
	return w.settle(s, out)
}

// finishIfDrained ends a worker that has left, when nothing is in flight to it.
func (w *Worker) finishIfDrained(out []core.Effect) []core.Effect {
	for s := range w.copies {
		c := &w.copies[s]
		if c.Kind == scheme.Published && (c.headersReceived != c.versionsTotal || c.beside && c.landed < len(w.plan.Shards[s].Pieces)) {
			return out
		}
	}
	if w.hearsOfOthers() {
		return out
	}
	w.must(!w.done, core.Input{})
	w.done = true
	return append(out, core.Effect{Kind: core.Done})
}

// checkCopies verifies what Bösen's clients promise: iteration c reads a copy of clock c - s or newer.
func (w *Worker) checkCopies() error {
	for s := range w.copies {
		c, sh := &w.copies[s], &w.shards[s]
		switch {
		case c.Kind == scheme.Pulled:
		// Into the worker's first iteration another shard may send it.
		case w.state == core.Computing && sh.released == 0 && sh.clock < w.iter-c.Bound && w.iter > w.first:
			return fmt.Errorf("core: worker %d computes %d on a copy of shard %d of clock %d; the bound is %d", w.me, w.iter, s, sh.clock, c.Bound)
		case c.Kind == scheme.Published && c.beside && w.iter+1-max(c.head.Iter, w.first) > c.Bound+1:
			return fmt.Errorf("core: worker %d has pushed %d iterations and keeps the last %d; a version of shard %d "+
				"contains only %d of them", w.me, w.iter+1, c.Bound+1, s, c.head.Iter)
		}
	}
	return nil
}
