package train

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/station"
	"fluentps/ps/workload"
)

// Steps of the worker's own between two exchanges (internal/policy/local, internal/core/steps). The model is bound to parameters of the
// worker's own; the arenas that are received into and sent from belong to the exchange. An iteration of the node is an exchange, which
// begins when the answers to the last one are there. Some policies take steps before that: then the goroutine that computes goes on
// after a push, and the node's Compute only tells it that the answers have come.
//
//	node      Compute i ................. Forwarded, PieceReady... of i, TaskDone ......... Compute i+1
//	worker    takes over; steps ......... push ─► further steps, if the policy takes any ── takes over; ...

// ownSteps is the state of a worker that takes steps of its own; nil: every step is an exchange.
type ownSteps struct {
	own         *steps.Worker
	w           *Side
	granted     bool      // the driver's: Compute of an exchange was given, and it was not pushed
	sums        []float32 // of what the ranks of the team have changed; nil without a hierarchy
	exchange    int64     // the exchange of that Compute
	active      bool      // the driver's: the goroutine that computes has a task
	isGranted   bool      // as the goroutine that computes knows it
	ended       bool      // the goroutine that computes has learnt that training has ended
	takes       bool      // the step that begins takes the answer over, layer by layer
	index       int64     // the last step, or the one that is being taken
	over        func() bool
	noteGranted func()
}

// makeOwn makes the memory in which a worker takes steps of its own, and binds the model to that memory. Where every step is an
// exchange it does nothing.
func (w *Side) makeOwn() (err error) {
	r := w.station
	if !r.Config.Local.IsSet() {
		return nil
	}
	o := &ownSteps{w: w}
	w.deltas.own = o
	options, err := layout.StepsOf(r.Config, r.Plan, r.Roles, r.Set.Train.Rows())
	if err != nil {
		return err
	}
	options.Layers = w.pieces
	if err := o.placeVectors(&options); err != nil {
		return fmt.Errorf("parameters and gradients of the worker's own steps: %w", err)
	}
	if o.own, err = steps.New(options); err != nil {
		return err
	}
	o.over = func() bool { return w.done || o.granted && w.exchange.Over() }
	o.noteGranted = func() {
		if o.ended = w.done; o.ended || !o.over() {
			return
		}
		o.isGranted = true
		w.keepState(false)
		o.own.Granted(w.node.Progress())
	}
	return nil
}

// placeVectors finds memory for the vectors, and binds the model to it. On a device with memory of its own they stay
// there, if the device can do all of the worker's arithmetic: then the changes travel to the host once in a round,
// and the servers' parameters to the device.
func (o *ownSteps) placeVectors(options *steps.Options) (err error) {
	w := o.w
	n := w.station.Plan.Arena
	global, push := w.arenas.params.F32()[:n], w.arenas.grads.F32()[:n]
	if layout.Teams(w.station.Config) {
		return o.placeTeam(options, global, push)
	}
	if m, ok := w.model.(workload.Resident); ok && m.Apart() && steps.FitsDevice(options) {
		if err := station.Announce(w.o.Device, w.arenas.params, w.arenas.grads); err != nil {
			return err
		}
		v, err := steps.OnDevice(options, w.o.Device, global, push)
		if err != nil {
			return err
		}
		options.Vectors = v
		m.BindVecs(v.Views(steps.Own), v.Views(steps.Grads))
		return nil
	}
	var own, grads *comm.Buf
	if own, err = w.room(n * shard.ElemBytes); err == nil {
		grads, err = w.room(n * shard.ElemBytes)
	}
	if err != nil {
		return err
	}
	clear(own.F32()[:n])
	clear(grads.F32()[:n])
	options.Vectors = steps.OnHost(options, own.F32()[:n], grads.F32()[:n], global, push)
	return w.bindModel(own, grads)
}

// placeTeam finds memory for the vectors of a worker whose ranks take steps of their own: its parameters are those of
// its team, and what its ranks have changed is summed where others have gradients.
func (o *ownSteps) placeTeam(options *steps.Options, global, push []float32) (err error) {
	w := o.w
	n := len(global)
	var team, into *comm.Buf
	if w.leader != nil { // the members read the parameters
		team, into = w.station.Team.Of(comm.Peer(w.station.Me)), w.leader.own
	} else if team, err = w.alloc(n * shard.ElemBytes); err != nil {
		return err
	}
	sums, err := w.alloc(n * shard.ElemBytes)
	if err != nil {
		return err
	}
	clear(team.F32()[:n])
	o.sums = sums.F32()[:n]
	clear(o.sums)
	options.Vectors = steps.OnHost(options, team.F32()[:n], o.sums, global, push)
	return w.makeHost(team.F32()[:n], into)
}

// begin is told that the node may exchange: the answers to the last push are there, or begin to be.
func (o *ownSteps) begin(t core.Task) {
	o.granted, o.exchange = true, t.Iter
	if !o.active {
		o.active = true
		o.w.endWait(o.w.station.Transport.Now())
		o.w.site.start(t)
	}
}

// goOn ends a round on the driver, and begins the next one if its answers are there already or the policy takes steps before that.
func (o *ownSteps) goOn(it *iteration) {
	o.granted = false
	it.done()
	o.active = !o.w.done && (o.own.Runs() || o.granted)
	if o.active {
		o.w.endWait(o.w.station.Transport.Now())
		o.w.site.start(core.Task{Owner: int32(o.w.me), Parts: 1, Iter: o.exchange + 1})
	}
}

// isActive says whether the goroutine that computes has a task.
func (o *ownSteps) isActive() bool { return o != nil && o.active }

// round takes steps and pushes, and returns when an exchange was pushed, or training has ended, or the run has failed.
func (o *ownSteps) round(it *iteration) {
	w := o.w
	it.allReadable, it.allWritable, o.takes, o.isGranted, o.ended = false, false, false, false, false
	var sum timing
	stop := func() { w.site.onDriver(func() { o.active = false }, false) }
	for {
		if !o.isGranted {
			o.look(it)
		}
		if o.ended {
			stop()
			return
		}
		next := steps.Step
		if !o.takes {
			next = o.own.Next(o.isGranted)
		}
		switch next {
		case steps.Await:
			if !o.await(it, &sum) {
				stop()
				return
			}
		case steps.Step:
			pushed, ok := o.step(it, &sum)
			if !ok {
				stop()
				return
			}
			if pushed {
				o.end(it, &sum, o.own.Pushed(o.exchange))
				return
			}
		case steps.Vote:
			if !o.vote(&sum) {
				stop()
				return
			}
		case steps.Push:
			o.end(it, &sum, o.push(it, &sum))
			return
		}
	}
}

// look lets messages move, and finds out whether the answers to the last push have come.
func (o *ownSteps) look(it *iteration) {
	if !o.own.Runs() {
		o.isGranted = true // else no task would have been started
		o.w.site.await(false, always, func() { o.own.Granted(o.w.node.Progress()) })
		return
	}
	o.w.site.poll()
	o.w.site.await(false, always, o.noteGranted)
	it.allReadable = o.isGranted
}

func always() bool { return true }

// await waits for the answers to the last push, and takes them over. It returns false if training has ended, or the run has failed.
func (o *ownSteps) await(it *iteration, sum *timing) bool {
	if !o.isGranted {
		sum.waited += o.w.site.await(true, o.over, o.noteGranted)
		if !o.isGranted {
			return false
		}
		it.allReadable = true
	}
	if !o.own.TakesNow() {
		return true
	}
	if o.own.Runs() {
		o.own.Taken()
		return true
	}
	o.takes = true // the first step takes it over layer by layer
	return true
}

// step takes a step. pushed says that it was the last one before a push, which was made layer by layer. ok is false if the run has failed.
func (o *ownSteps) step(it *iteration, sum *timing) (pushed, ok bool) {
	w := o.w
	t := w.station.Transport
	if h := w.deltas.host; h != nil {
		return o.teamStep(it, h, sum)
	}
	it.timing = timing{start: t.Now()}
	index := o.own.Steps()
	o.index = index
	w.o.Timeline.Begin(index)
	if !o.startLate(it, index) {
		return false, false
	}
	if err := w.feed.gather(index, w.station.Set.Train); err != nil {
		return false, w.failed(index, "rows", err)
	}
	loss, correct, err := w.model.Forward(w.feed.batch, func(layer int) {
		if o.takes {
			it.awaitReadable(layer)
			o.own.Take(layer)
		}
	})
	if err != nil {
		return false, w.failed(index, "forward", err)
	}
	w.lookAtLoss(loss, index, &w.feed.batch)
	if o.takes {
		if it.awaitAllReadable(); !it.allReadable {
			return false, false
		}
		o.own.Taken()
		o.takes = false
	}
	it.slowDown()
	samples := int64(w.feed.batch.N)
	o.own.Computed(steps.Sums{Samples: samples, Correct: int64(correct), Loss: loss})
	last := o.own.Last()
	if last {
		o.handHeader(it)
	}
	o.own.Begin()
	w.o.Timeline.Turns()
	if err := w.moveBy(o.own, samples, func(layer int) {
		if last && w.station.Config.Overlaps() {
			o.handLayer(it, layer)
		}
	}); err != nil {
		return false, w.failed(index, "backward", err)
	}
	o.own.Ended()
	if err := o.own.Err(); err != nil {
		return false, w.failed(index, "step", err)
	}
	fault, _ := o.own.Fault()
	w.lookAtStep(fault, index)
	w.o.Timeline.Backwarded()
	if last && !w.station.Config.Overlaps() {
		o.handLayers(it)
	}
	w.stepped(it, index, sum)
	return last, w.keepScript(index)
}

// vote tells the lead shard's server what the worker wants after its step, and waits for the verdict. It returns
// false if the run has failed.
func (o *ownSteps) vote(sum *timing) (ok bool) {
	w := o.w
	step, exchange := o.own.Ballot()
	m := wire.Header{Iter: o.exchange, Clock: step}
	if exchange {
		m.Part = 1
	}
	w.site.onDriver(func() { w.step(core.Input{Kind: core.Voted, Msg: m}) }, true)
	isKnown := func() bool { _, known := w.node.Verdict(); return known }
	sum.waited += w.site.await(true, isKnown, func() {
		if ok = isKnown(); ok {
			yes, _ := w.node.Verdict()
			o.own.Decided(yes)
		}
	})
	return ok
}

// startLate sleeps before a step if a fault asks for sleep after an update.
func (o *ownSteps) startLate(it *iteration, index int64) (ok bool) {
	if o.takes {
		return it.startLate(index)
	}
	o.w.sleepLate(it, index)
	return true
}

// push makes a push of all layers. The worker takes over what it continues from before anything is sent: the answer to this push may come
// at once, and lands in the same place as the last one.
func (o *ownSteps) push(it *iteration, sum *timing) (samples int64) {
	it.timing = timing{}
	o.handHeader(it)
	for layer := range o.w.pieces {
		o.makeLayer(layer)
	}
	samples = o.own.Pushed(o.exchange)
	for layer := len(o.w.pieces) - 1; layer >= 0; layer-- {
		o.handOver(it, layer)
	}
	sum.pushing += it.timing.pushing
	return samples
}

// handHeader tells the node what the push reports.
func (o *ownSteps) handHeader(it *iteration) {
	w := o.w
	it.rec.Iter = o.exchange
	p := o.own.Pushes(o.exchange)
	it.header = wire.Header{Samples: p.Samples, Correct: p.Correct, Loss: p.Loss}
	w.site.onDriver(it.forwarded, false)
	if !it.allWritable {
		it.awaitAllWritable()
	}
}

// handLayers makes the push of all layers, the last first.
func (o *ownSteps) handLayers(it *iteration) {
	for layer := len(o.w.pieces) - 1; layer >= 0; layer-- {
		o.handLayer(it, layer)
	}
}

func (o *ownSteps) handLayer(it *iteration, layer int) {
	o.makeLayer(layer)
	o.handOver(it, layer)
}

// handOver hands a layer of the push to the driver, unless the device that made the push has failed.
func (o *ownSteps) handOver(it *iteration, layer int) {
	w := o.w
	if o.own.Err() != nil {
		return
	}
	from := w.station.Transport.Now()
	w.site.onDriver(it.handOver[layer], true)
	it.timing.handedOver(from, w.station.Transport.Now(), len(w.pieces[layer]))
}

// end ends a round whose push was made, or the run if the device that made it has failed.
func (o *ownSteps) end(it *iteration, sum *timing, samples int64) {
	if err := o.own.Err(); err != nil {
		o.w.failed(o.index, "push", err)
		return
	}
	o.finish(it, sum, samples)
}

// finish ends a round whose push was made.
func (o *ownSteps) finish(it *iteration, sum *timing, samples int64) {
	if h := o.w.deltas.host; h != nil { // the others of the team count their own
		samples, h.taken = h.taken, 0
	}
	it.finishRound(o.exchange, sum, samples)
	o.w.site.onDriver(func() { o.goOn(it) }, false)
}
