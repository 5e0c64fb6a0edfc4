package runtime

import (
	"slices"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// wait begins a time in which nothing is computed.
func (w *workerSide) wait(from time.Duration) { w.waits, w.waitFrom = true, from }

// waited ends it and splits it: blocked until the last reply began, pull until it was in. What forward waits for is of
// the replies to the iteration before.
func (w *workerSide) waited(now time.Duration) {
	blocked := max(0, w.lastHead-w.waitFrom)
	pull := now - max(w.lastHead, w.waitFrom)
	w.waits = false
	w.blocked, w.pull = w.blocked+blocked, w.pull+pull
	w.spans.Add(metrics.Blocked, blocked)
	w.spans.Add(metrics.Pull, pull)
	w.records.Waited(w.blocked, w.pull)
}

// exchange is what an iteration knows of those it is computed with: the servers, or the ranks of its node (team.go,
// member.go). Whoever computes calls prepare; the driver calls the others.
type exchange interface {
	Readable(layer int) bool       // its parameters are those of this iteration
	Writable(layer int) bool       // nothing of its last gradients is to be sent any more
	over() bool                    // the exchange before is: all layers are readable
	forwarded(h wire.Header)       // forward is over
	prepare(layer int, iter int64) // the gradients of a layer are final, and about to be handed over
	layerReady(layer int)          // they are handed over
	taskDone()                     // the iteration is over
}

// alone is the exchange of a worker without members.
type alone struct{ *workerSide }

func (w alone) Readable(layer int) bool { return w.node.Readable(layer) }
func (w alone) Writable(layer int) bool { return w.node.Writable(layer) }
func (w alone) over() bool              { return w.node.State() == core.Computing }
func (w alone) taskDone()               { w.step(core.Input{Kind: core.TaskDone}) }
func (w alone) forwarded(h wire.Header) { w.step(core.Input{Kind: core.Forwarded, Msg: h}) }

func (w alone) prepare(layer int, iter int64) { w.makeDelta(layer, iter, int64(w.batch.N)) }

// iteration is the one that is computed. Its functions are made once, so that an iteration takes no memory.
type iteration struct {
	w       *workerSide
	layer   int  // whose parameters or gradients are waited for
	over    bool // the exchange before is over: all layers are readable
	sent    bool // and nothing of it is to be sent any more: all gradients are writable
	waited  time.Duration
	pushing time.Duration
	head    wire.Header       // what Forwarded says
	rec     metrics.Iteration // what is kept of it
	end     time.Duration

	forward, backward     func(layer int)
	forwarded, done       func()
	handOver              []func() // by layer
	isReadable, isOver    func() bool
	isWritable, isSent    func() bool
	noteReadable, noteAll func()
	noteWrite, noteSent   func()
}

func newIteration(w *workerSide) *iteration {
	it := &iteration{w: w}
	it.forward, it.backward = it.readable, it.ready
	it.forwarded = func() {
		it.head.Blocked = int64(w.blocked)
		w.with.forwarded(it.head)
	}
	it.done = it.finish
	for layer := range w.pieces {
		it.handOver = append(it.handOver, func() { w.with.layerReady(layer) })
	}
	it.isReadable = func() bool { return w.with.Readable(it.layer) }
	it.isOver = func() bool { return w.with.over() }
	it.isWritable = func() bool { return w.with.Writable(it.layer) }
	it.isSent = func() bool {
		for l := range w.pieces {
			if !w.with.Writable(l) {
				return false
			}
		}
		return true
	}
	it.noteReadable = func() { it.over = it.isOver() }
	it.noteAll = func() {
		w.keepState()
		it.over, it.sent = it.isOver(), it.isSent()
	}
	it.noteSent = func() { it.sent = it.isSent() }
	it.noteWrite = func() {}
	return it
}

// compute runs one iteration, at the worker's site.
func (w *workerSide) compute(iter int64) {
	defer w.r.guarded()
	t := w.r.t
	it := w.it
	nothing := w.r.reduce != nil // is exchanged
	it.over, it.sent, it.waited, it.pushing = nothing, nothing, 0, 0
	it.rec.Iter = iter
	start := t.Now()
	w.rows = w.sampler.Batch(iter, w.rows)
	w.batch.Take(w.r.set.Train, w.rows)
	w.augment.Apply(w.batch.X, iter)
	loss, correct := w.model.Forward(w.batch, it.forward)
	if it.allRead(); !it.over {
		return // the run has failed
	}
	forward, slept := t.Now()-start-it.waited, time.Duration(0)
	if d := w.slow.due(iter, forward); d > 0 {
		from := t.Now()
		w.site.pause(d)
		slept = t.Now() - from
	}
	it.head = wire.Header{Samples: int64(w.batch.N), Correct: int64(correct), Loss: loss}
	w.site.report(it.forwarded, false)
	it.writable(len(w.pieces) - 1)
	if w.direct.grads != nil {
		it.allWritable()
	}
	it.runBackward()
	it.end = t.Now()
	computing := it.end - start - it.waited - it.pushing
	w.slow.over(iter, forward, computing-slept, slept)
	w.usual = smooth(w.usual, computing-slept)
	it.rec = metrics.Iteration{Iter: iter, Start: it.end - it.pushing - computing - w.r.trainStart + w.r.before, Compute: computing, Injected: slept, Push: it.pushing}
	w.site.report(it.done, false)
}

// runBackward hands the layers over as they become ready, or after the last one where nothing is to overlap.
func (it *iteration) runBackward() {
	w := it.w
	switch {
	case w.r.cfg.InRounds():
		w.model.Backward(func(int) {})
		for layer := range w.pieces {
			it.ready(layer)
		}
	case !w.r.cfg.Send.Overlap:
		w.model.Backward(func(int) {})
		for layer := range slices.Backward(w.pieces) {
			it.ready(layer)
		}
	default:
		w.model.Backward(it.backward)
	}
}

// ready is called by backward when the gradients of a layer are final.
func (it *iteration) ready(layer int) {
	w := it.w
	w.with.prepare(layer, it.rec.Iter)
	from := w.r.t.Now()
	w.site.report(it.handOver[layer], true)
	it.pushing += w.r.t.Now() - from
	it.writable(layer - 1)
}

// finish ends the iteration: it is the wait's turn.
func (it *iteration) finish() {
	w := it.w
	w.samples += int64(w.batch.N)
	w.spans.Add(metrics.Compute, it.rec.Compute)
	w.spans.Add(metrics.Push, it.rec.Push)
	w.records.Add(it.rec)
	w.pace.Add(it.rec.Compute)
	w.blocked, w.pull = 0, 0
	w.wait(it.end)
	w.with.taskDone()
}

// makeDelta turns what is pushed of a layer as deltas into them.
func (w *workerSide) makeDelta(layer int, iter, samples int64) {
	for _, q := range w.deltas[layer] {
		w.local.Step(w.grads.F32(), w.params.F32(), q, iter, samples)
	}
}

// layerReady hands the pieces of a layer over; what there is to say of them leaves together.
func (w *workerSide) layerReady(layer int) {
	w.r.net.Begin()
	for _, p := range w.pieces[layer] {
		w.step(core.Input{Kind: core.PieceReady, Piece: p})
	}
	w.r.net.End()
}

// readable waits until a layer's parameters are there.
func (it *iteration) readable(layer int) {
	if it.over {
		return
	}
	it.layer = layer
	it.waited += it.w.site.await(true, it.isReadable, it.noteReadable)
}

// allRead waits for layers that the model may not have asked for, and says what is still to be sent.
func (it *iteration) allRead() {
	if it.over && it.sent { // nothing was exchanged
		return
	}
	it.waited += it.w.site.await(true, it.isOver, it.noteAll)
}

// writable waits until the last gradients of a layer were sent.
func (it *iteration) writable(layer int) {
	if it.sent || layer < 0 {
		return
	}
	it.layer = layer
	it.pushing += it.w.site.await(false, it.isWritable, it.noteWrite)
}

// allWritable waits for all layers: a device starts on one while the gradients of the layer above are waited for, and here
// it writes them where they are sent from.
func (it *iteration) allWritable() {
	if !it.sent {
		it.pushing += it.w.site.await(false, it.isSent, it.noteSent)
	}
}

// smooth is an exponential mean with weight 1/4 for the newest.
func smooth(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}
