package serve

import (
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
)

// Receives of short pushes are posted before the push is announced. MPI copies a message that finds no receive, and copies
// it again when the receive is posted; for messages of up to 64 KiB that was measured to cost a tenth of a round.

// ahead is where the next push of a worker is received before a header has announced it.
type ahead struct {
	buf    *comm.Buf // swapped with the memory of the push's slot; nil until used
	posted bool      // the receives are posted
	ops    []comm.Op // by piece of the shard; 0: none, or its piece has landed
	landed []int32   // pieces that landed before the header, which travels on another channel
	queued bool      // the worker is in Side.dueAhead
}

// OpenAhead posts receives for the first push of every worker.
func (s *Side) OpenAhead() {
	for _, st := range s.stores {
		if st == nil || !s.station.Routes.ReceivesAhead(st.sh) {
			continue
		}
		st.ahead = make([]ahead, len(st.arrivals))
		for w := range st.ahead {
			if st.grads[w] == nil {
				st.ahead[w].ops = make([]comm.Op, len(st.sh.Pieces))
				s.queueAhead(st, int32(w))
			}
		}
	}
	s.postDue()
}

// aheadPush is a worker's next push of a shard, whose receives are to be posted ahead.
type aheadPush struct {
	st *store
	w  int32
}

// queueAhead has receives posted after the messages of the current batch were sent.
func (s *Side) queueAhead(st *store, w int32) {
	if a := &st.ahead[w]; a.ops != nil && !a.queued {
		a.queued = true
		s.dueAhead = append(s.dueAhead, aheadPush{st, w})
	}
}

// postDue posts the queued receives. It leaves for a later batch a buffer that a fold still reads, and a worker whose push
// was announced meanwhile and is landing.
func (s *Side) postDue() {
	later := s.dueAhead[:0]
	for _, d := range s.dueAhead {
		a := &d.st.ahead[d.w]
		if d.st.arrivals[d.w].missing > 0 || a.buf != nil && slices.Contains(d.st.readSlots, a.buf) {
			later = append(later, d)
			continue
		}
		a.queued = false
		s.post(d.st, d.w)
	}
	s.dueAhead = later
}

func (s *Side) post(st *store, w int32) {
	a := &st.ahead[w]
	if a.buf == nil {
		b, err := s.station.Transport.Alloc(int(st.sh.Bytes()))
		if err != nil {
			s.station.Net.Fail(err)
			return
		}
		a.buf = b
	}
	a.posted = true
	from := comm.Peer(s.station.Roles.Workers[w])
	for i := range st.sh.Pieces {
		if p := &st.sh.Pieces[i]; s.station.Routes.Push(p.ID, w) == layout.Ahead {
			off, n := st.at(p)
			a.ops[i] = s.station.Transport.Irecv(from, comm.Data, link.TagPush|uint32(p.ID), a.buf, off, n, s.landed)
			s.posted++
		}
	}
}

// stageAhead gives a slot the memory that its push is received into, if receives were posted ahead; else it returns false.
// The node hears of pieces that have already landed after it has handled the header.
func (s *Side) stageAhead(st *store, e *core.Effect) bool {
	if st.ahead == nil || !st.ahead[e.To].posted {
		return false
	}
	a, to := &st.ahead[e.To], &st.slots[e.Slot]
	a.posted = false
	a.buf, to.own = to.own, a.buf
	to.push, to.owner = to.own.F32(), -1
	st.arrivals[e.To] = arrival{slot: e.Slot, missing: int32(len(st.sh.Pieces)), samples: e.Samples}
	for _, piece := range a.landed {
		s.told = append(s.told, s.landedInput(st, piece, e.To))
	}
	a.landed = a.landed[:0]
	return true
}

// receivedAhead handles a piece whose receive was posted ahead. It returns true if the push's header has not arrived.
func (s *Side) receivedAhead(st *store, p *shard.Piece, w int32) bool {
	a := &st.ahead[w]
	i := p.ID - st.sh.Pieces[0].ID
	if a.ops[i] != 0 {
		a.ops[i] = 0
		s.posted--
	}
	if a.posted {
		a.landed = append(a.landed, p.ID)
	}
	return a.posted
}

// CloseAhead cancels the receives of pushes that never arrived.
func (s *Side) CloseAhead() {
	for _, st := range s.stores {
		if st == nil {
			continue
		}
		for w := range st.ahead {
			for _, op := range st.ahead[w].ops {
				if op != 0 {
					s.station.Transport.Cancel(op)
				}
			}
		}
	}
}

// Idle says that no receive is posted ahead.
func (s *Side) Idle() bool { return s.posted == 0 }
