package sim

import (
	"math"

	"fluentps/ps/core"
)

// owed is a push on its way, at a shard whose scheme asks for norms.
type owed struct {
	pieces  int
	samples int64
}

// staged notes where a push lands, and what it owes.
func (s *simulation) staged(id int32, e *core.Effect) {
	t := &s.tallies[e.Shard]
	t.slots[e.To] = e.Slot
	if t.iters != nil {
		t.iters[e.To] = e.Iter
		s.caughtUp(id, e)
	}
	if t.owed != nil {
		t.owed[e.To] = owed{len(s.plan.Shards[e.Shard].Pieces), e.Samples}
	}
}

// measure gives the norms of a push with its last piece: those of its numbers, or modelled ones, as if each element of
// its mean had the same magnitude and each parameter were 1.
func (s *simulation) measure(m *server, in *core.Input) {
	t := &s.tallies[in.Shard]
	if t.owed == nil {
		return
	}
	o := &t.owed[in.Worker]
	if o.pieces--; o.pieces > 0 {
		return
	}
	if s.real != nil {
		st := &s.real.stores[in.Shard]
		now := st.bufs[m.node.Shard(in.Shard).Cur]
		in.Norm2, in.NormInf, in.NormW = st.math.Norms(st.slots[in.Slot], now, 1/float64(max(o.samples, 1)))
		return
	}
	sh, norm := &s.plan.Shards[in.Shard], s.cfg.Simulate.PushNorm
	root := math.Sqrt(float64(sh.Hi - sh.Lo))
	in.NormInf, in.Norm2, in.NormW = float32(norm), float32(norm*root), float32(root)
}
