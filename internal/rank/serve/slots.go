package serve

import (
	"fmt"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/core"
	"fluentps/internal/policy/optim"
)

// allocVersions allocates the memory of a shard's versions: all of them in shared memory, or the first one in its own.
func (s *Side) allocVersions(st *store) (err error) {
	r := s.station
	for w, rank := range r.Roles.Workers {
		st.shared = st.shared || r.Routes.Shares(st.sh.ID, int32(w))
		if r.Routes.ReadsGradients(st.sh.ID, int32(w)) {
			st.grads[w] = r.Gradients(rank).F32()[st.sh.Lo:st.sh.Hi]
		}
	}
	if !st.shared {
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
	own   *comm.Buf // the server's memory; nil until used
	push  []float32 // the push: in own, or in its worker's memory
	owner int32     // the worker whose memory push is in; -1: none
}

// stageInPlace notes a push that stays in its worker's memory.
func (s *Side) stageInPlace(e *core.Effect) {
	st := s.stores[e.Shard]
	st.slots[e.Slot].push, st.slots[e.Slot].owner = st.grads[e.To], e.To
	st.arrivals[e.To] = arrival{slot: e.Slot, missing: int32(len(st.sh.Pieces)), samples: e.Samples}
}

// pieceInPlace handles a piece of a push that stays in its worker's memory; the header arrived before.
func (s *Side) pieceInPlace(from int, piece int32) {
	p := &s.station.Plan.Pieces[piece]
	st, w := s.stores[p.Shard], s.station.WorkerOf[from]
	if st.grads[w] == nil || st.arrivals[w].missing == 0 {
		s.station.Net.Fail(fmt.Errorf("serve: rank %d announces piece %d in shared memory, and no push of that piece is in flight", from, piece))
		return
	}
	s.station.Net.Traffic.Shared += p.Bytes()
	s.pieceLanded(st, piece, w)
}

// merge adds a part of a push to the parts that have landed.
func (s *Side) merge(e *core.Effect) {
	st := s.stores[e.Shard]
	s.beginFoldTime()
	optim.AddDelta(st.slots[e.Dst].push, st.slots[e.Slot].push, 1)
}

// ownPush copies a push out of its worker's memory.
func (s *Side) ownPush(e *core.Effect) {
	st := s.stores[e.Shard]
	to := &st.slots[e.Slot]
	s.beginFoldTime()
	from := to.push
	if s.useOwnMemory(st, to) {
		copy(to.push, from)
	}
}

// useOwnMemory gives a slot the server's own memory, after all folds that read it. It returns false if memory is short; the
// run has then failed.
func (s *Side) useOwnMemory(st *store, to *slot) bool {
	if slices.Contains(st.readSlots, to.own) {
		s.beginFoldTime()
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
	to.push, to.owner = to.own.F32(), -1
	return true
}

// replyShared names the version to a worker that reads it in shared memory, and thereby lets the worker overwrite its
// gradients.
func (s *Side) replyShared(e *core.Effect) {
	st := s.stores[e.Shard]
	if st.readsGrads[e.To] {
		s.beginFoldTime()
		st.flush()
		s.endFoldTime()
	}
	s.station.Net.Send(s.station.Roles.Workers[e.To], &e.Msg)
}
