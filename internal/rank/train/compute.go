package train

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/steps"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/external"
)

// beginWait starts a period in which the rank computes nothing.
func (w *Side) beginWait(from time.Duration) { w.idle.on, w.idle.from = true, from }

// endWait ends the period and splits it: blocked until the last reply header arrived, pull from then on. A wait of forward
// is for replies to the previous iteration.
func (w *Side) endWait(now time.Duration) {
	blocked := max(0, w.idle.lastHeader-w.idle.from)
	pull := now - max(w.idle.lastHeader, w.idle.from)
	if w.idle.on {
		w.o.Timeline.Waited(w.it.rec.Iter, w.idle.from, w.idle.lastHeader, now)
	}
	w.idle.on = false
	w.idle.blocked, w.idle.pull = w.idle.blocked+blocked, w.idle.pull+pull
	w.counters.spans.Add(metrics.Blocked, blocked)
	w.counters.spans.Add(metrics.Pull, pull)
	w.counters.records.Waited(w.idle.blocked, w.idle.pull)
}

// iteration is the one that the rank computes. Its functions are made once, so that an iteration allocates nothing.
type iteration struct {
	w           *Side
	layer       int               // the layer whose parameters or gradients are awaited
	allReadable bool              // the previous exchange is over
	allWritable bool              // nothing of the previous exchange is left to send
	header      wire.Header       // the content of Forwarded
	rec         timings.Iteration // the record of the iteration
	timing      timing
	isLast      bool        // the iteration is the last of a checkpoint: known when its parameters have arrived
	mayHurry    bool        // backward may begin before the loss is known here
	clip        *steps.Clip // of what is pushed, or summed in a team; nil: nothing is clipped
	isOwn       bool        // the batch is this worker's own, and this task is its first of the batch

	forward, backward, turned  func(layer int) // turned: backward of a layer is over, and its gradients are handed over later
	forwarded, done            func()
	handOver                   []func() // by layer
	isReadable, isAllReadable  func() bool
	isWritable, isAllWritable  func() bool
	noteReadable, noteAll      func()
	noteWrite, noteAllWritable func()
}

// timing is how long the parts of an iteration took, as measured by the rank that computes.
type timing struct {
	start, end time.Duration // end: handed, or when computing ended if nothing was handed over
	waited     time.Duration // for parameters
	ended      time.Duration // when computing ended: not before end, and later if the processor was lost
	handed     time.Duration // when the last layer that has pieces had been handed over; 0: none was
	pushing    time.Duration // handing gradients over, and waiting until they may be overwritten
	forward    time.Duration // until forward ended the last time, without waits
	late       time.Duration // injected slowness before the iteration, after the update
	slept      time.Duration // injected slowness between forward and backward
	paused     time.Duration // injected pauses
}

func newIteration(w *Side) *iteration {
	it := &iteration{w: w, clip: steps.NewClip(w.station.Config.Train.Clip, w.station.Plan)}
	it.turned = w.o.Timeline.LayerDone
	it.forward, it.backward = it.awaitReadable, func(layer int) {
		it.turned(layer)
		it.ready(layer)
	}
	it.forwarded = func() {
		it.header.Blocked = int64(w.idle.blocked)
		w.exchange.Forwarded(it.header)
	}
	it.done = it.finish
	for layer := range w.pieces {
		it.handOver = append(it.handOver, func() { w.exchange.LayerReady(layer) })
	}
	it.isReadable = func() bool { return w.exchange.Readable(it.layer) }
	it.isAllReadable = func() bool { return w.exchange.Over() }
	it.isWritable = func() bool { return w.exchange.Writable(it.layer) }
	it.isAllWritable = func() bool {
		for l := range w.pieces {
			if !w.exchange.Writable(l) {
				return false
			}
		}
		return true
	}
	it.noteReadable = func() { it.allReadable = it.isAllReadable() }
	it.noteAll = func() {
		w.keepState(true)
		it.isLast = w.node != nil && w.node.AwaitsSave()
		it.allReadable, it.allWritable = it.isAllReadable(), it.isAllWritable()
	}
	it.noteAllWritable = func() { it.allWritable = it.isAllWritable() }
	it.noteWrite = func() {}
	if m, ok := w.model.(interface{ Look(external.Looks) }); ok {
		m.Look(external.Looks{AllReadable: func() bool { return it.allReadable }, AllWritable: it.hurries})
	}
	return it
}

// compute runs one iteration, or the worker's part of one. The worker's site calls it.
func (w *Side) compute(task core.Task) {
	defer w.station.Guard()
	if own := w.deltas.own; own != nil {
		own.round(w.it)
		return
	}
	if host := w.deltas.host; host != nil {
		host.compute(w.it, task)
		return
	}
	t := w.station.Transport
	it := w.it
	it.allReadable, it.allWritable, it.timing = w.exchangeAfter, w.exchangeAfter, timing{start: t.Now()}
	it.rec.Iter = task.Iter
	w.o.Timeline.Begin(task.Iter)
	it.isOwn = task.Owner == int32(w.me) && (w.ranges == nil || w.ranges.isOwn)
	if w.ranges != nil {
		if !it.computeRanges(task) {
			return
		}
	} else if !it.computeBatch(task.Iter) {
		return
	}
	it.timing.conclude(t.Now())
	computing := it.timing.end - it.timing.start - it.timing.waited - it.timing.pushing
	injected := it.timing.late + it.timing.slept + it.timing.paused
	it.settleSlowness(computing - injected)
	w.counters.computeUsual = smooth(w.counters.computeUsual, computing-injected)
	it.rec = timings.Iteration{Iter: task.Iter, Start: it.timing.end - it.timing.pushing - computing - w.station.Began +
		w.station.Before, Compute: computing, Injected: injected, Push: it.timing.pushing, Samples: int(it.header.Samples)}
	if task.Keep == core.Again {
		it.rec.Samples = 0 // they count in the task that computed them
	}
	w.site.onDriver(it.done, false)
}

// conclude sets the end, at or before now. All but pushing is then before the last layer was handed over, so before any answer to it. A
// clock that is read later may be late by any time, for whoever reads it may lose the processor.
func (t *timing) conclude(now time.Duration) {
	t.ended = now
	if t.end = t.handed; t.end == 0 {
		t.end = now
	}
}

// handedOver counts a layer that was handed over, from then to now.
func (t *timing) handedOver(from, now time.Duration, pieces int) {
	if t.pushing += now - from; pieces > 0 {
		t.handed = now
	}
}

// slowAt returns the iteration that selects the faults: the worker's own one, even while it computes ranges of another
// worker's batch.
func (it *iteration) slowAt() int64 {
	if g := it.w.ranges; g != nil && g.iter >= 0 {
		return g.iter
	}
	if host := it.w.deltas.host; host != nil {
		return host.own.Steps()
	}
	if own := it.w.deltas.own; own != nil {
		return own.own.Steps()
	}
	return it.rec.Iter
}

// slowDown ends forward, and slows a worker down whom a fault slows.
func (it *iteration) slowDown() {
	it.w.o.Timeline.Forwarded()
	t := &it.timing
	t.forward = it.w.station.Transport.Now() - t.start - t.waited - t.late - t.paused
	it.sleep(it.w.slow.due(it.slowAt(), t.forward), &t.slept)
	it.pause()
}

// startLate sleeps before an iteration if a fault asks for sleep after an update, so when all parameters have arrived. It returns false
// if the run has failed.
func (it *iteration) startLate(iter int64) (ok bool) {
	it.pause()
	d, asked := it.w.slow.before(iter)
	if d == 0 {
		return true
	}
	if it.awaitAllReadable(); !it.allReadable {
		return false
	}
	it.sleep(d, &it.timing.late)
	it.w.slow.settle(asked, it.timing.late)
	return true
}

// pause stops computing, if a fault asks for it by now.
func (it *iteration) pause() {
	st := it.w.station
	it.sleep(it.w.slow.paused(st.Transport.Now()-st.Began+st.Before, st.Before), &it.timing.paused)
}

// sleep sleeps for d, and adds the time that it took.
func (it *iteration) sleep(d time.Duration, sum *time.Duration) {
	if d <= 0 {
		return
	}
	from := it.w.station.Transport.Now()
	it.w.site.pause(d)
	*sum += it.w.station.Transport.Now() - from
}

// computeBatch computes a whole iteration. It returns false if the run has failed.
func (it *iteration) computeBatch(iter int64) (ok bool) {
	w := it.w
	if !it.awaitDealt(iter) || !it.startLate(iter) {
		return false
	}
	if err := w.feed.take(iter, w.station.Set.Train); err != nil {
		return w.failed(iter, "rows", err)
	}
	// Who is slowed down, or paused, sleeps between its forward and its backward pass.
	it.mayHurry = w.slow.to.None() && len(w.slow.pauses) == 0
	loss, correct, err := w.model.Forward(w.feed.batch, it.forward)
	if err != nil {
		return w.failed(iter, "forward", err)
	}
	w.lookAtLoss(loss, iter, &w.feed.batch)
	if it.awaitAllReadable(); !it.allReadable {
		return false
	}
	it.slowDown()
	it.header = wire.Header{Samples: int64(w.feed.batch.N), Correct: int64(correct), Loss: loss}
	w.site.onDriver(it.forwarded, false)
	it.awaitWritable(len(w.pieces) - 1)
	if w.arenas.direct.grads != nil {
		it.awaitAllWritable()
	}
	if err := it.runBackward(); err != nil {
		return w.failed(iter, "backward", err)
	}
	return w.keepScript(iter)
}

// failed ends the run on all ranks, because what computes has failed in a pass of an iteration. It returns false: there is no iteration to
// end.
func (w *Side) failed(iter int64, pass string, err error) (ok bool) {
	err = fmt.Errorf("rank %d, worker %d: iteration %d: %s: %w", w.station.Me, w.index, iter, pass, err)
	w.site.onDriver(func() { w.station.Net.Fail(err) }, false)
	return false
}

// announce lets the model take the next batch while its device computes, if the rows of a worker never change.
func (it *iteration) announce() {
	w := it.w
	m, ok := w.model.(workload.Forehanded)
	if !ok || w.dealing != nil || w.ranges != nil || w.deltas.own != nil || w.deltas.host != nil {
		return
	}
	m.Ahead(func() (workload.Batch, bool) {
		err := w.feed.take(it.rec.Iter+1, w.station.Set.Train) // the iteration itself takes it again, and fails
		return w.feed.batch, err == nil
	})
}

// runBackward hands layers over as they become ready, or all after the last one if the configuration asks for no overlap. Where a rank is
// one of a team, the sum of the team is clipped, and not what the rank adds to it.
func (it *iteration) runBackward() error {
	w := it.w
	w.o.Timeline.Turns()
	overlaps := w.station.Config.Overlaps()
	done := it.turned
	if overlaps {
		done = it.backward
	}
	if err := w.model.Backward(done); err != nil {
		return err
	}
	if w.leader == nil && w.member == nil {
		it.clipSums()
	}
	w.o.Timeline.Backwarded()
	if !overlaps {
		it.readyAll()
	}
	return nil
}

// clipSums clips the gradients of all layers, which are sums over the samples of the header.
func (it *iteration) clipSums() { it.clip.Sums(it.w.arenas.grads.F32(), it.header.Samples) }

// readyAll hands all layers over.
func (it *iteration) readyAll() {
	if it.w.station.Config.InRounds() {
		for layer := range it.w.pieces {
			it.ready(layer)
		}
		return
	}
	for layer := range slices.Backward(it.w.pieces) {
		it.ready(layer)
	}
}

// Backward calls ready when the gradients of a layer are final.
func (it *iteration) ready(layer int) {
	w := it.w
	w.exchange.Prepare(layer, it.rec.Iter)
	from := w.station.Transport.Now()
	w.site.onDriver(it.handOver[layer], true)
	it.timing.handedOver(from, w.station.Transport.Now(), len(w.pieces[layer]))
	it.awaitWritable(layer - 1)
	w.o.Timeline.HandedOver(layer)
}

// finish ends the iteration; the wait for the next one begins.
func (it *iteration) finish() {
	w := it.w
	w.counters.samples += int64(it.rec.Samples)
	w.counters.spans.Add(metrics.Compute, it.rec.Compute)
	w.counters.spans.Add(metrics.Push, it.rec.Push)
	if it.isOwn {
		w.counters.records.Add(it.rec)
		w.idle.blocked, w.idle.pull = 0, 0
	}
	w.counters.pace.Add(it.rec.Compute)
	w.dealing.computed(it.rec.Iter, it.header.Samples, it.rec.Compute)
	w.beginWait(it.timing.ended)
	w.exchange.TaskDone()
}

// makeDelta replaces the gradients of a layer by deltas, for the parts that are pushed as deltas.
func (w *Side) makeDelta(layer int, iter, samples int64) {
	for _, q := range w.deltas.runs[layer] {
		w.deltas.local.Step(w.arenas.grads.F32(), w.arenas.params.F32(), q, iter, samples)
	}
	w.lookAtStep(w.deltas.local.Fault(), iter)
}

// handOver hands the pieces of a layer to the node. Their headers leave together.
func (w *Side) handOver(layer int) {
	w.station.Net.Begin()
	for _, p := range w.pieces[layer] {
		w.step(core.Input{Kind: core.PieceReady, Piece: p})
	}
	w.station.Net.End()
}

// awaitReadable waits until a layer's parameters have arrived.
func (it *iteration) awaitReadable(layer int) {
	it.w.o.Timeline.Awaits()
	if !it.allReadable {
		it.layer = layer
		it.timing.waited += it.w.site.await(true, it.isReadable, it.noteReadable)
	}
	it.w.o.Timeline.Computes(layer)
}

// awaitAllReadable waits for layers that the model may not have asked for, and notes whether gradients are still to be
// sent.
func (it *iteration) awaitAllReadable() {
	if it.allReadable && it.allWritable { // nothing is exchanged during an iteration
		return
	}
	it.timing.waited += it.w.site.await(true, it.isAllReadable, it.noteAll)
}

// awaitWritable waits until the previous gradients of a layer were sent.
func (it *iteration) awaitWritable(layer int) {
	if it.allWritable || layer < 0 {
		return
	}
	it.layer = layer
	it.timing.pushing += it.w.site.await(false, it.isWritable, it.noteWrite)
}

// awaitAllWritable waits for all layers. A device starts a layer while the host still waits for the gradients of the layer
// above, and a device that MPI sends from would overwrite gradients in flight.
func (it *iteration) awaitAllWritable() {
	if !it.allWritable {
		it.timing.pushing += it.w.site.await(false, it.isAllWritable, it.noteAllWritable)
	}
}

// smooth returns the exponential mean that gives the newest value the weight 1/4.
func smooth(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}
