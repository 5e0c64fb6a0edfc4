package sim

import (
	"slices"

	"fluentps/ps/core"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
)

// The values of the copies that workers keep. A worker that does not pull computes on while its push is in flight. So a piece of
// the push carries its own values from the moment at which its last byte has left, or the next gradients are computed. A published
// version stays in mail until the worker adopts it, because its server does not send the next one before that.

// copyOf says how workers keep their copies of the shards of a rule.
func (s *simulation) copyOf(rule int) core.Copy { return s.build().CopyOf(rule) }

// copyBytes is the most memory for the copies of one worker: the pushes that it keeps, and its pushes in flight.
func (s *simulation) copyBytes() (n int64) {
	for i := range s.plan.Shards {
		sh := &s.plan.Shards[i]
		switch c := s.copyOf(sh.Rule); c.Kind {
		case scheme.Cached:
			n += (c.Bound + 1) * sh.Bytes()
		case scheme.Published:
			n += 2 * (c.Bound + 1) * sh.Bytes()
		}
	}
	return n
}

// pushSent counts a piece that its worker sends. grads hold its values until the piece has landed, or carries its own.
func (f *floats) pushSent(i, me int32) {
	w := &f.replicas[me]
	w.flying++
	if f.keeps(i) {
		w.unsent = append(w.unsent, i)
	}
}

// keeps says whether the worker of a piece may compute on before the piece has landed, as one that computes for others may.
func (f *floats) keeps(i int32) bool {
	return f.s.hasTasks() || f.s.copyOf(f.s.plan.Shards[f.s.transfers.all[i].shard].Rule).Kind != scheme.Pulled
}

// pushLeft copies the values of a piece that has left, if its worker may compute on before the piece has landed.
func (f *floats) pushLeft(i int32, t *transfer) {
	w := &f.replicas[t.worker]
	if k := slices.Index(w.unsent, i); k >= 0 {
		w.unsent = slices.Delete(w.unsent, k, k+1)
		f.keep(i, w)
	}
}

// keepUnsent copies the values of pieces that have not left, before the gradients of the next iteration replace them. In virtual
// time these pieces leave before backward of their layer.
func (f *floats) keepUnsent(w *replica) {
	for _, i := range w.unsent {
		f.keep(i, w)
	}
	w.unsent = w.unsent[:0]
}

// keep copies the values of a piece in flight, so that the piece carries its own.
func (f *floats) keep(i int32, w *replica) {
	p := &f.s.plan.Pieces[f.s.transfers.all[i].piece]
	w.flying--
	if f.onWay == nil {
		f.onWay = map[int32][]float32{}
	}
	f.onWay[i] = slices.Clone(w.grads[p.Lo:p.Hi])
}

// pushed returns the values of a piece that has landed: its own, or those in the arena of its worker.
func (f *floats) pushed(i int32, t *transfer) []float32 {
	if v, ok := f.onWay[i]; ok {
		delete(f.onWay, i)
		return v
	}
	p, w := &f.s.plan.Pieces[t.piece], &f.replicas[t.worker]
	if t.life == f.s.workers[t.worker].life {
		w.flying--
	} // else its worker has rejoined while the piece waited for a busy server; it does not compute before all servers have answered
	return w.grads[p.Lo:p.Hi]
}

// lost drops the values of a piece that will not land.
func (f *floats) lost(i int32) { delete(f.onWay, i) }

// obeyWorker applies an effect of a worker node to its copy.
func (f *floats) obeyWorker(me int32, e *core.Effect) {
	sh, w := &f.s.plan.Shards[e.Shard], &f.replicas[me]
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
