package train

import (
	"slices"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// wait begins a time in which nothing is computed.
func (w *Side) wait(from time.Duration) { w.idle.on, w.idle.from = true, from }

// waited ends it and splits it: blocked until the last reply began, pull until it was in. What forward waits for is of
// the replies to the iteration before.
func (w *Side) waited(now time.Duration) {
	blocked := max(0, w.idle.lastHead-w.idle.from)
	pull := now - max(w.idle.lastHead, w.idle.from)
	w.idle.on = false
	w.idle.blocked, w.idle.pull = w.idle.blocked+blocked, w.idle.pull+pull
	w.books.spans.Add(metrics.Blocked, blocked)
	w.books.spans.Add(metrics.Pull, pull)
	w.books.records.Waited(w.idle.blocked, w.idle.pull)
}

// iteration is the one that is computed. Its functions are made once, so that an iteration takes no memory.
type iteration struct {
	w     *Side
	layer int               // whose parameters or gradients are waited for
	over  bool              // the exchange before is over: all layers are readable
	sent  bool              // and nothing of it is to be sent any more: all gradients are writable
	head  wire.Header       // what Forwarded says
	rec   metrics.Iteration // what is kept of it
	took  took
	own   bool // it is the worker's own, and none was computed of it before

	forward, backward     func(layer int)
	forwarded, done       func()
	handOver              []func() // by layer
	isReadable, isOver    func() bool
	isWritable, isSent    func() bool
	noteReadable, noteAll func()
	noteWrite, noteSent   func()
}

// took is the time of an iteration, as who computes it sees it.
type took struct {
	start, end time.Duration
	waited     time.Duration // for parameters
	pushing    time.Duration // handing gradients over, and waiting until they may be written
	forward    time.Duration // until the last forward was over, without waits
	slept      time.Duration // to be slow
}

func newIteration(w *Side) *iteration {
	it := &iteration{w: w}
	it.forward, it.backward = it.readable, it.ready
	it.forwarded = func() {
		it.head.Blocked = int64(w.idle.blocked)
		w.with.Forwarded(it.head)
	}
	it.done = it.finish
	for layer := range w.pieces {
		it.handOver = append(it.handOver, func() { w.with.LayerReady(layer) })
	}
	it.isReadable = func() bool { return w.with.Readable(it.layer) }
	it.isOver = func() bool { return w.with.Over() }
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

// compute runs one iteration, or what is the worker's of one, at the worker's site.
func (w *Side) compute(task core.Task) {
	defer w.station.Guard()
	t := w.station.Transport
	it := w.it
	it.over, it.sent, it.took = w.nothing, w.nothing, took{start: t.Now()}
	it.rec.Iter = task.Iter
	it.own = task.Owner == int32(w.me) && (w.ranges == nil || w.ranges.iter != task.Iter)
	if w.ranges != nil {
		if !it.computeRanges(task) {
			return
		}
	} else if !it.computeBatch(task.Iter) {
		return
	}
	it.took.end = t.Now()
	computing := it.took.end - it.took.start - it.took.waited - it.took.pushing
	w.slow.over(it.slowAt(), it.took.forward, computing-it.took.slept, it.took.slept)
	w.books.usual = smooth(w.books.usual, computing-it.took.slept)
	it.rec = metrics.Iteration{Iter: task.Iter, Start: it.took.end - it.took.pushing - computing - w.station.Began + w.station.Before, Compute: computing, Injected: it.took.slept, Push: it.took.pushing}
	w.site.report(it.done, false)
}

// slowAt is the worker's own iteration, by which it is slow, also with what is another's.
func (it *iteration) slowAt() int64 {
	if g := it.w.ranges; g != nil && g.iter >= 0 {
		return g.iter
	}
	return it.rec.Iter
}

// slowDown ends forward, and holds a worker up that is to be slow.
func (it *iteration) slowDown() {
	t := it.w.station.Transport
	it.took.forward = t.Now() - it.took.start - it.took.waited
	if d := it.w.slow.due(it.slowAt(), it.took.forward); d > 0 {
		from := t.Now()
		it.w.site.pause(d)
		it.took.slept = t.Now() - from
	}
}

// computeBatch computes a whole iteration; false: the run has failed.
func (it *iteration) computeBatch(iter int64) (ok bool) {
	w := it.w
	w.feed.rows = w.feed.sampler.Batch(iter, w.feed.rows)
	w.feed.batch.Take(w.station.Set.Train, w.feed.rows)
	w.feed.augment.Apply(w.feed.batch.X, iter)
	loss, correct := w.model.Forward(w.feed.batch, it.forward)
	if it.allRead(); !it.over {
		return false
	}
	it.slowDown()
	it.head = wire.Header{Samples: int64(w.feed.batch.N), Correct: int64(correct), Loss: loss}
	w.site.report(it.forwarded, false)
	it.writable(len(w.pieces) - 1)
	if w.arenas.direct.grads != nil {
		it.allWritable()
	}
	it.runBackward()
	return true
}

// runBackward hands the layers over as they become ready, or after the last one where nothing is to overlap.
func (it *iteration) runBackward() {
	w := it.w
	switch {
	case w.station.Config.InRounds():
		w.model.Backward(func(int) {})
		for layer := range w.pieces {
			it.ready(layer)
		}
	case !w.station.Config.Send.Overlap:
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
	w.with.Prepare(layer, it.rec.Iter)
	from := w.station.Transport.Now()
	w.site.report(it.handOver[layer], true)
	it.took.pushing += w.station.Transport.Now() - from
	it.writable(layer - 1)
}

// finish ends the iteration: it is the wait's turn.
func (it *iteration) finish() {
	w := it.w
	w.books.samples += it.head.Samples
	w.books.spans.Add(metrics.Compute, it.rec.Compute)
	w.books.spans.Add(metrics.Push, it.rec.Push)
	if it.own {
		w.books.records.Add(it.rec)
		w.idle.blocked, w.idle.pull = 0, 0
	}
	w.books.pace.Add(it.rec.Compute)
	w.wait(it.took.end)
	w.with.TaskDone()
}

// makeDelta turns what is pushed of a layer as deltas into them.
func (w *Side) makeDelta(layer int, iter, samples int64) {
	for _, q := range w.deltas.runs[layer] {
		w.deltas.local.Step(w.arenas.grads.F32(), w.arenas.params.F32(), q, iter, samples)
	}
}

// handOver hands the pieces of a layer over; what there is to say of them leaves together.
func (w *Side) handOver(layer int) {
	w.station.Net.Begin()
	for _, p := range w.pieces[layer] {
		w.step(core.Input{Kind: core.PieceReady, Piece: p})
	}
	w.station.Net.End()
}

// readable waits until a layer's parameters are there.
func (it *iteration) readable(layer int) {
	if it.over {
		return
	}
	it.layer = layer
	it.took.waited += it.w.site.await(true, it.isReadable, it.noteReadable)
}

// allRead waits for layers that the model may not have asked for, and says what is still to be sent.
func (it *iteration) allRead() {
	if it.over && it.sent { // nothing is exchanged
		return
	}
	it.took.waited += it.w.site.await(true, it.isOver, it.noteAll)
}

// writable waits until the last gradients of a layer were sent.
func (it *iteration) writable(layer int) {
	if it.sent || layer < 0 {
		return
	}
	it.layer = layer
	it.took.pushing += it.w.site.await(false, it.isWritable, it.noteWrite)
}

// allWritable waits for all layers: a device starts on one while the gradients of the layer above are waited for, and here
// it writes them where they are sent from.
func (it *iteration) allWritable() {
	if !it.sent {
		it.took.pushing += it.w.site.await(false, it.isSent, it.noteSent)
	}
}

// smooth is an exponential mean with weight 1/4 for the newest.
func smooth(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}
