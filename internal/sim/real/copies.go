package real

import (
	"slices"

	"fluentps/internal/core"
	"fluentps/internal/policy/optim"
	"fluentps/internal/sim"
	"fluentps/ps/scheme"
)

// The values of the copies that workers keep. A worker that does not pull computes on while its push is in flight. So a piece of
// the push carries its own values from the moment at which its last byte has left, or the next gradients are computed. A published
// version stays in mail until the worker adopts it, because its server does not send the next one before that.

// copyBytes is the most memory for the copies of one worker: the pushes that it keeps, and its pushes in flight.
func (f *floats) copyBytes() (n int64) {
	for i := range f.s.Plan().Shards {
		sh := &f.s.Plan().Shards[i]
		switch c := f.s.CopyOf(sh.Rule); c.Kind {
		case scheme.Cached:
			n += (c.Bound + 1) * sh.Bytes()
		case scheme.Published:
			n += 2 * (c.Bound + 1) * sh.Bytes()
		}
	}
	return n
}

// PushSent counts a piece that its worker sends. grads hold its values until the piece has landed, or carries its own.
func (f *floats) PushSent(i int32, t sim.Transfer) {
	w := &f.replicas[t.Worker]
	w.flying++
	if f.keeps(t.Shard) {
		w.unsent = append(w.unsent, outward{i, t.Piece})
	}
}

// keeps says whether a worker may compute on before a piece of that shard has landed, as one that computes for others may.
func (f *floats) keeps(shard int32) bool {
	return f.s.HasTasks() || f.s.CopyOf(f.s.Plan().Shards[shard].Rule).Kind != scheme.Pulled
}

// PushLeft copies the values of a piece that has left, if its worker may compute on before the piece has landed.
func (f *floats) PushLeft(i int32, t sim.Transfer) {
	w := &f.replicas[t.Worker]
	if k := slices.IndexFunc(w.unsent, func(o outward) bool { return o.transfer == i }); k >= 0 {
		w.unsent = slices.Delete(w.unsent, k, k+1)
		f.keep(outward{i, t.Piece}, w)
	}
}

// keepUnsent copies the values of pieces that have not left, before the gradients of the next iteration replace them. In virtual
// time these pieces leave before backward of their layer.
func (f *floats) keepUnsent(w *replica) {
	for _, o := range w.unsent {
		f.keep(o, w)
	}
	w.unsent = w.unsent[:0]
}

// keep copies the values of a piece in flight, so that the piece carries its own.
func (f *floats) keep(o outward, w *replica) {
	p := &f.s.Plan().Pieces[o.piece]
	w.flying--
	if f.onWay == nil {
		f.onWay = map[int32][]float32{}
	}
	f.onWay[o.transfer] = slices.Clone(w.grads[p.Lo:p.Hi])
}

// pushed returns the values of a piece that has landed: its own, or those in the arena of its worker.
func (f *floats) pushed(i int32, t sim.Transfer) []float32 {
	if v, ok := f.onWay[i]; ok {
		delete(f.onWay, i)
		return v
	}
	p, w := &f.s.Plan().Pieces[t.Piece], &f.replicas[t.Worker]
	if t.Life == f.s.Life(t.Worker) {
		w.flying--
	} // else its worker has rejoined while the piece waited for a busy server; it does not compute before all servers have answered
	return w.grads[p.Lo:p.Hi]
}

// Lost drops the values of a piece that will not land.
func (f *floats) Lost(i int32) { delete(f.onWay, i) }

// WorkerDid applies an effect of a worker node to its copy.
func (f *floats) WorkerDid(me int32, e *core.Effect) {
	sh, w := &f.s.Plan().Shards[e.Shard], &f.replicas[me]
	params, push := w.params[sh.Lo:sh.Hi], w.grads[sh.Lo:sh.Hi]
	slot := [2]int32{e.Shard, e.Slot}
	switch e.Kind {
	case core.Adopt:
		copy(params, w.mail[sh.Lo:sh.Hi])
	case core.Keep:
		if w.kept == nil {
			w.kept = map[[2]int32][]float32{}
		}
		w.kept[slot] = append(w.kept[slot][:0], push...)
	case core.AddLocal:
		if e.Slot >= 0 {
			push = w.kept[slot]
		}
		if sh.Stat {
			optim.AddValue(params, push, e.Scale, e.Weight)
		} else {
			optim.AddDelta(params, push, e.Scale*e.Weight)
		}
	}
}
