package runtime

import (
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// wait begins a time in which nothing is computed.
func (w *workerSide) wait(from time.Duration) { w.waits, w.waitFrom = true, from }

// waited ends it and splits it: blocked until the last reply began, pull until it was in. What forward waits for is of
// the replies to the iteration before.
func (w *workerSide) waited() {
	now := w.r.t.Now()
	blocked := max(0, w.lastHead-w.waitFrom)
	pull := now - max(w.lastHead, w.waitFrom)
	w.waits = false
	w.blocked, w.pull = w.blocked+blocked, w.pull+pull
	w.spans.Add(metrics.Blocked, blocked)
	w.spans.Add(metrics.Pull, pull)
	w.records.Waited(w.blocked, w.pull)
}

// iteration is one that is computed.
type iteration struct {
	w       *workerSide
	over    bool // the exchange before is over: all layers are readable
	sent    bool // and nothing of it is to be sent any more: all gradients are writable
	waited  time.Duration
	pushing time.Duration
}

// compute runs one iteration, at the worker's site.
func (w *workerSide) compute(iter int64) {
	defer w.r.guard(nil, nil)
	now := w.r.t.Now
	it := iteration{w: w}
	start := now()
	w.rows = w.sampler.Batch(iter, w.rows)
	w.r.set.Train.Fill(w.batch.X, w.batch.Y, w.rows)
	loss, correct := w.model.Forward(w.batch, it.readable)
	if it.allRead(); !it.over {
		return // the run has failed
	}
	forward := now() - start - it.waited
	w.paused, w.injected = 0, w.stretch(iter, forward)
	if w.injected > 0 {
		from := now()
		w.site.pause(w.injected)
		w.paused = now() - from // sleeps overshoot, and what is not ours must not count as ours in the next iteration
	}
	w.site.report(func() {
		w.step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: int64(w.batch.N), Correct: int64(correct), Loss: loss, Blocked: int64(w.blocked)}})
	})
	it.writable(len(w.pieces) - 1)
	w.model.Backward(func(layer int) {
		for _, q := range w.deltas[layer] {
			w.local.Step(w.grads.F32(), w.params.F32(), q, iter, int64(w.batch.N))
		}
		from := now()
		w.site.report(func() { w.layerReady(layer) })
		it.pushing += now() - from
		it.writable(layer - 1)
	})
	end := now()
	computing := end - start - it.waited - it.pushing
	w.usual = smooth(w.usual, computing-w.paused)
	rec := metrics.Iteration{Iter: iter, Start: end - it.pushing - computing - w.r.trainStart, Compute: computing, Injected: w.injected, Push: it.pushing}
	w.site.report(func() {
		w.samples += int64(w.batch.N)
		w.spans.Add(metrics.Compute, rec.Compute)
		w.spans.Add(metrics.Push, rec.Push)
		w.records.Add(rec)
		w.blocked, w.pull = 0, 0
		w.wait(end)
		w.step(core.Input{Kind: core.TaskDone})
	})
}

// layerReady hands the pieces of a layer over; what there is to say of them leaves together.
func (w *workerSide) layerReady(layer int) {
	w.r.begin()
	for _, p := range w.pieces[layer] {
		w.step(core.Input{Kind: core.PieceReady, Piece: p})
	}
	w.r.end()
}

// readable waits until a layer's parameters are there.
func (it *iteration) readable(layer int) {
	if it.over {
		return
	}
	w := it.w
	from := w.r.t.Now()
	w.site.await(true, func() bool { return w.node.Readable(layer) }, func() { it.over = w.node.State() == core.Computing })
	it.waited += w.r.t.Now() - from
}

// allRead waits for layers that the model may not have asked for, and says what is still to be sent.
func (it *iteration) allRead() {
	w := it.w
	from := w.r.t.Now()
	w.site.await(true, func() bool { return w.node.State() == core.Computing }, func() {
		it.over, it.sent = w.node.State() == core.Computing, true
		for l := range w.pieces {
			it.sent = it.sent && w.node.Writable(l)
		}
	})
	it.waited += w.r.t.Now() - from
}

// writable waits until the last gradients of a layer were sent.
func (it *iteration) writable(layer int) {
	if it.sent || layer < 0 {
		return
	}
	w := it.w
	from := w.r.t.Now()
	w.site.await(false, func() bool { return w.node.Writable(layer) }, func() {})
	it.pushing += w.r.t.Now() - from
}

// smooth is an exponential mean with weight 1/4 for the newest.
func smooth(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}

// stretch is how long the injected slowness holds this iteration up. Before there is an iteration to go by, a
// whole one is taken as three times its forward pass.
func (w *workerSide) stretch(iter int64, forward time.Duration) time.Duration {
	usual := w.usual
	if usual == 0 {
		usual = 3 * forward
	}
	var d time.Duration
	for _, s := range w.slow {
		if iter < s.From || s.Until > 0 && iter >= s.Until {
			continue
		}
		d += s.Sleep
		if s.Factor > 1 {
			d += time.Duration((s.Factor - 1) * float64(usual))
		}
	}
	return d
}
