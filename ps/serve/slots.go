package serve

import (
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/ps/core"
	"fluentps/ps/optim"
)

// memoryOf takes the memory of a shard's versions: all in shared memory, or the first.
func (s *Side) memoryOf(st *store) (err error) {
	r := s.station
	for w, rank := range r.Roles.Workers {
		st.near = st.near || r.Routes.Shares(st.sh.ID, int32(w))
		if r.Routes.Lends(st.sh.ID, int32(w)) {
			st.grads[w] = r.Gradients(rank).F32()[st.sh.Lo:st.sh.Hi]
		}
	}
	if !st.near {
		st.bufs[0], err = r.Transport.Alloc(int(st.sh.Bytes()))
		return err
	}
	for i := range st.bufs {
		st.bufs[i] = comm.NewSegment(r.Version(st.sh, int32(i)))
	}
	return nil
}

// slot is a staged push.
type slot struct {
	own  *comm.Buf // nil until used
	push []float32 // where it is: in own, or in its worker's memory
	of   int32     // that worker, or -1
}

// stageThere notes a push that stays where it is.
func (s *Side) stageThere(e *core.Effect) {
	st := s.stores[e.Shard]
	st.slots[e.Slot].push, st.slots[e.Slot].of = st.grads[e.To], e.To
	st.in[e.To] = arrival{slot: e.Slot, open: int32(len(st.sh.Pieces)), samples: e.Samples}
}

// pieceThere takes a piece of a push that stays where it is; the header went before.
func (s *Side) pieceThere(from int, piece int32) {
	p := &s.station.Plan.Pieces[piece]
	st, w := s.stores[p.Shard], s.station.WorkerOf[from]
	if st.grads[w] == nil || st.in[w].open == 0 {
		s.station.Net.Fail(fmt.Errorf("serve: rank %d says that piece %d is there, and no such push is on its way", from, piece))
		return
	}
	s.station.Net.Traffic.Shared += p.Bytes()
	s.pieceLanded(st, piece, w)
}

// merge adds a part of a push to those that have landed.
func (s *Side) merge(e *core.Effect) {
	st := s.stores[e.Shard]
	s.folding()
	optim.AddDelta(st.slots[e.Dst].push, st.slots[e.Slot].push, 1)
}

// ownPush copies a push out of its worker's memory.
func (s *Side) ownPush(e *core.Effect) {
	st := s.stores[e.Shard]
	to := &st.slots[e.Slot]
	s.folding()
	from := to.push
	if s.ownMemory(st, to) {
		copy(to.push, from)
	}
}

// ownMemory gives a slot the server's own memory, which nothing has to be read of any more.
func (s *Side) ownMemory(st *store, to *slot) bool {
	if slices.Contains(st.lent, to.own) {
		s.folding()
		st.flush()
	}
	if to.own == nil {
		b, err := s.station.Transport.Alloc(int(st.sh.Bytes()))
		if err != nil {
			s.station.Net.Fail(err)
			return false
		}
		to.own = b
	}
	to.push, to.of = to.own.F32(), -1
	return true
}

// replyNear says which version it is, and that the worker may write its gradients again.
func (s *Side) replyNear(e *core.Effect) {
	st := s.stores[e.Shard]
	if st.borrows[e.To] {
		s.folding()
		st.flush()
		s.folded()
	}
	s.station.Net.Send(s.station.Roles.Workers[e.To], &e.Msg)
}
