package train

import (
	"math"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics/timings"
)

// Steps of the ranks of a host between two exchanges with the servers (cluster.hierarchy: node with local). A step of a team is
// local.host_steps steps of each rank, from the team's parameters, on parameters of the rank's own. The team's parameters then move by the
// mean of what the ranks changed, weighted by samples:
//
//	leader's segment    the team's parameters (steps.Worker.Own of the leader), which all ranks read at the begin of a step
//	member's segment    samples * (the member's parameters - the team's), which the leader adds up
//
// A member reads and writes only between the leader's Task and its own last Summand. The leader changes the team's parameters only when
// all members have sent theirs.

// hostSteps are the steps of one rank of a team; nil without a hierarchy.
type hostSteps struct {
	w     *Side
	own   *steps.Worker // between two averagings within the host
	into  []float32     // the rank's change
	taken int64         // samples of this rank since the last push
}

// makeHost makes the host of a rank that reads the team's parameters and writes its change into the given memory; nil: memory of its own.
func (w *Side) makeHost(team []float32, into *comm.Buf) error {
	r := w.station
	if !r.Config.Local.IsSet() || !layout.Teams(r.Config) {
		return nil
	}
	o, err := layout.HostStepsOf(r.Config, r.Plan)
	if err != nil {
		return err
	}
	arena := r.Plan.Arena * shard.ElemBytes
	if into == nil {
		if into, err = w.alloc(arena); err != nil {
			return err
		}
	}
	own, err := w.room(arena)
	if err != nil {
		return err
	}
	grads, err := w.room(arena)
	if err != nil {
		return err
	}
	n := r.Plan.Arena
	clear(own.F32()[:n])
	clear(grads.F32()[:n])
	o.Layers = w.pieces
	o.Vectors = steps.OnHost(&o, own.F32()[:n], grads.F32()[:n], team, into.F32()[:n])
	h := &hostSteps{w: w, into: into.F32()[:r.Plan.Arena]}
	if h.own, err = steps.New(o); err != nil {
		return err
	}
	w.deltas.host = h
	return w.bindModel(own, grads)
}

// round takes the steps of this rank in a step of its team, and writes its change. at is the number of earlier steps of the team. ok is
// false if the run has failed.
func (h *hostSteps) round(it *iteration, at int64, sum *timing) (p steps.Sums, ok bool) {
	if first := at * h.w.station.Config.Local.HostSteps; h.own.Steps() != first { // the run has resumed
		h.own.StartAt(first)
	}
	h.own.Granted(wire.Progress{Loss: math.NaN(), Share: 1})
	for {
		switch h.own.Next(true) {
		case steps.Await:
			h.own.Taken()
		case steps.Step:
			if !h.step(it, sum) {
				return p, false
			}
		case steps.Push:
			p = h.own.Pushes(0)
			for layer := range h.w.pieces {
				h.own.Make(layer, 0)
			}
			h.taken += h.own.Pushed(0)
			return p, true
		}
	}
}

// step takes a step of this rank. It returns false if the run has failed.
func (h *hostSteps) step(it *iteration, sum *timing) (ok bool) {
	w, index := h.w, h.own.Steps()
	it.timing = timing{start: w.station.Transport.Now()}
	w.o.Timeline.Begin(index)
	w.sleepLate(it, index)
	if err := w.feed.gather(index, w.station.Set.Train); err != nil {
		return w.failed(index, "rows", err)
	}
	loss, correct, err := w.model.Forward(w.feed.batch, nil)
	if err != nil {
		return w.failed(index, "forward", err)
	}
	w.lookAtLoss(loss, index, &w.feed.batch)
	it.slowDown()
	samples := int64(w.feed.batch.N)
	h.own.Computed(steps.Sums{Samples: samples, Correct: int64(correct), Loss: loss})
	h.own.Begin()
	w.o.Timeline.Turns()
	if err := w.moveBy(h.own, samples, func(int) {}); err != nil {
		return w.failed(index, "backward", err)
	}
	h.own.Ended()
	fault, _ := h.own.Fault()
	w.lookAtStep(fault, index)
	w.o.Timeline.Backwarded()
	w.stepped(it, index, sum)
	return w.keepScript(index)
}

// moveBy runs backward of a step on parameters of the rank's own, and moves them: layer by layer, or at the end if all gradients are
// clipped together.
func (w *Side) moveBy(own *steps.Worker, samples int64, moved func(layer int)) error {
	atEnd := own.MovesAtEnd()
	err := w.model.Backward(func(layer int) {
		if atEnd {
			w.o.Timeline.LayerDone(layer)
			return
		}
		own.Move(layer, samples)
		w.o.Timeline.LayerDone(layer)
		moved(layer)
	})
	if err != nil || !atEnd {
		return err
	}
	own.Backwarded(samples)
	for layer := range slices.Backward(w.pieces) {
		own.Move(layer, samples)
		moved(layer)
	}
	return nil
}

// compute is a step of the team in a member.
func (h *hostSteps) compute(it *iteration, t core.Task) {
	w := h.w
	var sum timing
	p, ok := h.round(it, t.Iter, &sum)
	if !ok {
		return
	}
	it.header = wire.Header{Samples: p.Samples, Correct: p.Correct, Loss: p.Loss}
	w.site.onDriver(it.forwarded, false)
	it.timing = timing{}
	for layer := len(w.pieces) - 1; layer >= 0; layer-- {
		from := w.station.Transport.Now()
		w.site.onDriver(it.handOver[layer], true)
		it.timing.handedOver(from, w.station.Transport.Now(), len(w.pieces[layer]))
	}
	sum.pushing += it.timing.pushing
	it.finishRound(t.Iter, &sum, p.Samples)
	w.site.onDriver(it.done, false)
}

// finishRound makes the record of an iteration of several steps. Its waits delay the start, as those of one step do.
func (it *iteration) finishRound(iter int64, sum *timing, samples int64) {
	st := it.w.station
	it.isOwn = true
	it.timing.conclude(st.Transport.Now())
	it.rec = timings.Iteration{Iter: iter, Start: it.timing.end - sum.pushing - sum.forward - st.Began + st.Before,
		Compute: sum.forward, Injected: sum.late + sum.slept + sum.paused, Push: sum.pushing, Samples: int(samples)}
}

// teamStep takes a step of the worker's team, whose leader this rank is. pushed and ok are as those of step.
func (o *ownSteps) teamStep(it *iteration, h *hostSteps, sum *timing) (pushed, ok bool) {
	w, l := o.w, o.w.leader
	if o.takes {
		if it.awaitAllReadable(); !it.allReadable {
			return false, false
		}
		o.own.Taken()
		o.takes = false
	}
	at := o.own.Steps()
	o.index = at
	if l != nil {
		w.site.onDriver(func() { l.beginStep(at) }, false)
	}
	p, ok := h.round(it, at, sum)
	if !ok {
		return false, false
	}
	it.timing = timing{}
	if l == nil {
		copy(o.sums, h.into)
	} else if p, ok = o.awaitTeam(it, l, p, sum); !ok {
		return false, false
	}
	o.own.Computed(p)
	last := o.own.Last()
	if last {
		o.handHeader(it)
	}
	for layer := len(w.pieces) - 1; layer >= 0; layer-- {
		o.own.MoveBy(layer, p.Samples)
		if last {
			o.handLayer(it, layer)
		}
	}
	o.own.Ended()
	sum.pushing += it.timing.pushing
	return last, true
}

// awaitTeam waits until all ranks of the team have done their step, and returns what they report.
func (o *ownSteps) awaitTeam(it *iteration, l *teamLeader, p steps.Sums, sum *timing) (of steps.Sums, ok bool) {
	w := o.w
	head := wire.Header{Samples: p.Samples, Correct: p.Correct, Loss: p.Loss}
	w.site.onDriver(func() {
		l.forwardOver(0, head)
		for layer := range w.pieces {
			l.summandReady(0, layer)
		}
	}, false)
	sum.waited += w.site.await(true, l.team.Over, func() {
		if ok = l.team.Over(); ok {
			of = steps.Sums{Samples: l.head.Samples, Correct: l.head.Correct, Loss: l.head.Loss}
		}
	})
	return of, ok
}
