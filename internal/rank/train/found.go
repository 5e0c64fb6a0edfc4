package train

import (
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/ps/workload"
)

// Where a value of this rank is not finite (internal/plan/origin). In the steady state the rank looks at its loss, and at magnitudes
// that passes over memory have seen: those of its own steps, and of gradients that are encoded. Gradients that are pushed as they are,
// are looked at by the servers.

// found notes a finding, and tells rank 0 of the first. onDriver: the caller drives the rank.
func (w *Side) found(f origin.Finding, onDriver bool) {
	st := w.station
	f.Worker, f.Server, f.At = int32(w.me), origin.Nobody, st.Transport.Now()
	if !w.counters.found.Note(f) {
		return
	}
	st.Log.Warn("a value is not finite", "place", f.Place, "tensor", f.Param, "element", f.Elem, "iteration", f.Iter, "value", f.Value)
	tell := func() {
		h := wire.StopAsked{Rank: int32(st.Me), Diverged: true}.Header()
		st.Net.Send(0, &h)
	}
	if onDriver {
		tell()
		return
	}
	w.site.onDriver(tell, false)
}

// Found notes a finding of the exchange that takes the place of pushes, for the goroutine that drives.
func (w *Side) Found(f origin.Finding) { w.found(f, true) }

// lookAtLoss searches back from a loss that is not finite: to the samples, to the parameters, and, where the worker takes steps on a
// device, to its last step.
func (w *Side) lookAtLoss(loss float64, iter int64, b *workload.Batch) {
	if !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		return
	}
	x := b.Numbers()
	params, last := w.read()
	f := origin.Finding{Place: origin.Loss, Iter: iter, Value: origin.Text(loss), Batch: b.Largest(),
		Params: origin.Number(optim.TopFinite(params))}
	if at := optim.NotFinite(x); at >= 0 {
		f.Place, f.Param, f.Elem, f.Value = origin.Data, b.Place(at), at, origin.Text(float64(x[at]))
	} else if at := optim.NotFinite(params); at >= 0 {
		f.Place, f.Caused, f.Value = origin.Parameters, true, origin.Text(float64(params[at]))
		f.Param, f.Elem, f.Layer = w.station.Plan.ElementAt(at)
		if last != nil && optim.NotFinite(w.received()) < 0 { // its last step, which was made on a device
			f.Caused, f.Iter = false, iter-1
			w.ofLastStep(&f, at, last)
		}
	} else if origin.Huge(f.Batch, f.Params) {
		f.Place = origin.Data
	}
	w.found(f, false)
}

// read returns the parameters that the model has read, and the gradients of the step before if the worker takes steps of its own.
func (w *Side) read() (params, last []float32) {
	n := w.station.Plan.Arena
	own := w.deltas.own
	switch host := w.deltas.host; {
	case host != nil:
		return host.own.Read(steps.Own), nil
	case own != nil:
		if _, looks := own.own.Fault(); !looks {
			last = own.own.Read(steps.Grads)
		}
		return own.own.Read(steps.Own), last
	case w.ranges != nil:
		return w.ranges.params.F32()[:n], nil
	}
	return w.arenas.params.F32()[:n], nil
}

// ofLastStep says whether element at of what a step has made comes from its gradient.
func (w *Side) ofLastStep(f *origin.Finding, at int, grads []float32) {
	f.Inner, f.Gradient, f.Grad = true, origin.Number(optim.TopFinite(grads)), origin.Number(grads[at])
	if f.Place = origin.Optimizer; optim.NotFinite(grads[at:at+1]) == 0 {
		f.Place = origin.Gradient
	}
}

// makeLayer makes the push of a layer, and looks at it.
func (o *ownSteps) makeLayer(layer int) {
	o.own.Make(layer, o.exchange)
	o.w.lookAtChange(layer)
}

// lookAtChange looks at a layer of the push of a worker that takes steps of its own.
func (w *Side) lookAtChange(layer int) {
	push := w.arenas.grads.F32()
	for _, id := range w.pieces[layer] {
		p := &w.station.Plan.Pieces[id]
		if optim.Top(push[p.Lo:p.Hi]) < optim.Infinite {
			continue
		}
		own := w.deltas.own.own
		at := p.Lo + optim.LastNotFinite(push[p.Lo:p.Hi])
		f := origin.Finding{Iter: w.deltas.own.index, Value: origin.Text(float64(push[at]))}
		w.ofLastStep(&f, at, own.Read(steps.Grads))
		f.Param, f.Elem, f.Layer = w.station.Plan.ElementAt(at)
		w.found(f, false)
	}
}

// received returns what the servers have answered last.
func (w *Side) received() []float32 { return w.arenas.params.F32()[:w.station.Plan.Arena] }

// lookAtStep notes what a step of the worker's own has found.
func (w *Side) lookAtStep(fault *optim.Fault, iter int64) {
	if fault == nil {
		return
	}
	f := origin.OfFault(fault)
	f.Param, f.Elem, f.Layer = w.station.Plan.ElementAt(fault.At)
	f.Iter, f.Inner = iter, true
	f.Batch = w.feed.batch.Largest()
	w.found(f, false)
}

// lookAtPush looks at a piece that was encoded. The batch may be the next one by now, and another goroutine may fill it.
func (w *Side) lookAtPush(p *shard.Piece, grads []float32, codec payload.Codec, encoded []byte) {
	top := optim.Top(grads)
	at := payload.Infinite(codec, encoded, top)
	if top < optim.Infinite && at < 0 {
		return
	}
	f := origin.Finding{Place: origin.Payload, Iter: w.node.Iter()}
	if top >= optim.Infinite {
		at = optim.LastNotFinite(grads)
		f.Place, f.Value = origin.Gradient, origin.Text(float64(grads[at]))
	} else {
		f.Value = origin.Text(math.Copysign(math.Inf(1), float64(grads[at])))
	}
	f.Param, f.Elem, f.Layer = w.station.Plan.ElementAt(p.Lo + at)
	f.Gradient = origin.Number(optim.TopFinite(grads))
	w.found(f, true)
}

// lookAtSum looks for the rank of a team whose gradients make the sum of a piece not finite.
func (w *Side) lookAtSum(p *shard.Piece, sums []float32, l *teamLeader) {
	f := origin.Finding{Place: origin.Sum, Iter: l.team.Iter()}
	at := optim.NotFinite(sums)
	f.Value = origin.Text(float64(sums[at]))
	for k := range l.written {
		part := l.written[k][p.Lo:p.Hi]
		f.Gradient = max(f.Gradient, origin.Number(optim.TopFinite(part)))
		if i := optim.LastNotFinite(part); i >= 0 {
			f.Place, at, f.Value = origin.Gradient, i, origin.Text(float64(part[i]))
		}
	}
	f.Param, f.Elem, f.Layer = w.station.Plan.ElementAt(p.Lo + at)
	w.found(f, true)
}
