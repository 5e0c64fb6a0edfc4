package sim

import (
	"math"

	"fluentps/ps/core"
)

// unmeasured is a push in flight to a shard whose scheme needs norms.
type unmeasured struct {
	pieces  int // that have not landed
	samples int64
}

// staged notes the slot in which a push lands, and whether its norms are needed.
func (s *simulation) staged(id int32, e *core.Effect) {
	t := &s.tallies[e.Shard]
	t.slots[e.To] = e.Slot
	if t.iters != nil {
		t.iters[e.To] = e.Iter
		s.releaseAhead(id, e)
	}
	if t.unmeasured != nil {
		t.unmeasured[e.To] = unmeasured{len(s.plan.Shards[e.Shard].Pieces), e.Samples}
	}
}

// measure adds the norms of a push to its last piece. Without real gradients it models them: each element of the mean has the
// same magnitude, and each parameter is 1.
func (s *simulation) measure(m *server, in *core.Input) {
	t := &s.tallies[in.Shard]
	if t.unmeasured == nil {
		return
	}
	o := &t.unmeasured[in.Worker]
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
