package sim

import (
	"math"

	"fluentps/internal/core"
)

// unmeasured is a push in flight to a shard whose scheme needs norms.
type unmeasured struct {
	pieces  int // that have not landed
	samples int64
}

// staged notes the slot in which a push lands, and whether its norms are needed.
func (s *Simulation) staged(id int32, e *core.Effect) {
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
func (s *Simulation) measure(m *server, in *core.Input) {
	t := &s.tallies[in.Shard]
	if t.unmeasured == nil {
		return
	}
	o := &t.unmeasured[in.Worker]
	if o.pieces--; o.pieces > 0 {
		return
	}
	if s.values != nil {
		in.Norm2, in.NormInf, in.NormW = s.values.Norms(in.Shard, in.Slot, o.samples)
		return
	}
	sh, norm := &s.plan.Shards[in.Shard], s.cfg.Simulate.PushNorm
	root := math.Sqrt(float64(sh.Hi - sh.Lo))
	in.NormInf, in.Norm2, in.NormW = float32(norm), float32(norm*root), float32(root)
}

// A worker that keeps a copy of a shard does not wait until its push has landed, and with send.overlap not even until the push has
// left. Pieces of the next push may arrive while others of the last push are in flight. The server gets such a piece when it has
// staged the next push, as a real server does that posts its receives then.

// holdAhead says whether a piece belongs to a push that its server has not staged yet. It keeps such a piece for releaseAhead.
func (s *Simulation) holdAhead(i int32) bool {
	t := &s.traffic.transfers.all[i]
	iters := s.tallies[t.Shard].iters
	if iters == nil || t.Iter == iters[t.Worker] {
		return false
	}
	key := [2]int32{t.Shard, t.Worker}
	s.traffic.ahead[key] = append(s.traffic.ahead[key], i)
	return true
}

// releaseAhead delivers the pieces that arrived before their server staged their push.
func (s *Simulation) releaseAhead(id int32, e *core.Effect) {
	key := [2]int32{e.Shard, e.To}
	for _, i := range s.traffic.ahead[key] {
		s.q.after(s.now, 0, evAhead, id, i)
	}
	delete(s.traffic.ahead, key) // holdAhead keeps the pieces of a still later push again
}

// dropAhead drops the pieces of a worker that died: their push will never be staged.
func (s *Simulation) dropAhead(m *server, w int32) {
	for _, id := range m.node.Shards() {
		key := [2]int32{id, w}
		for _, i := range s.traffic.ahead[key] {
			s.traffic.transfers.take(i)
			if s.values != nil {
				s.values.Lost(i)
			}
		}
		delete(s.traffic.ahead, key)
	}
}
