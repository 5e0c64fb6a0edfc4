package serve

import (
	"slices"

	"fluentps/comm"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/shard"
)

// Receives of short pushes are posted before the push is announced. MPI copies a message that finds no receive, and once
// more when one comes; of up to 64 KiB that was measured to cost a tenth of a round.

// ahead is where the next push of a worker lands, while no header has said that it comes.
type ahead struct {
	buf    *comm.Buf // becomes its slot's memory, and that of the slot this; nil until used
	posted bool      // receives are posted
	ops    []comm.Op // by piece of the shard; 0: none, or it has landed
	landed []int32   // pieces that came before the header, which went on another channel
	due    bool      // it is in Side.due
}

// OpenAhead posts receives for the first push of every worker.
func (s *Side) OpenAhead() {
	for _, st := range s.stores {
		if st == nil || !s.station.Routes.ReceivesAhead(st.sh) {
			continue
		}
		st.ahead = make([]ahead, len(st.in))
		for w := range st.ahead {
			if st.grads[w] == nil {
				st.ahead[w].ops = make([]comm.Op, len(st.sh.Pieces))
				s.soon(st, int32(w))
			}
		}
	}
	s.postDue()
}

// due is a worker whose next push shall be received ahead.
type due struct {
	st *store
	w  int32
}

// soon has receives posted when the batch has said what it has to say.
func (s *Side) soon(st *store, w int32) {
	if a := &st.ahead[w]; a.ops != nil && !a.due {
		a.due = true
		s.due = append(s.due, due{st, w})
	}
}

// postDue posts what is due. What a fold still reads is left for a later batch, and so is the worker whose push was
// announced meanwhile, and lands now.
func (s *Side) postDue() {
	kept := s.due[:0]
	for _, d := range s.due {
		a := &d.st.ahead[d.w]
		if d.st.in[d.w].open > 0 || a.buf != nil && slices.Contains(d.st.lent, a.buf) {
			kept = append(kept, d)
			continue
		}
		a.due = false
		s.post(d.st, d.w)
	}
	s.due = kept
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

// stagedAhead gives a slot the memory that its push lands in, if receives were posted. Pieces that have landed are told to
// the node when it has seen the header.
func (s *Side) stagedAhead(st *store, e *core.Effect) bool {
	if st.ahead == nil || !st.ahead[e.To].posted {
		return false
	}
	a, to := &st.ahead[e.To], &st.slots[e.Slot]
	a.posted = false
	a.buf, to.own = to.own, a.buf
	to.push, to.of = to.own.F32(), -1
	st.in[e.To] = arrival{slot: e.Slot, open: int32(len(st.sh.Pieces)), samples: e.Samples}
	for _, piece := range a.landed {
		s.sent = append(s.sent, s.landedOf(st, piece, e.To))
	}
	a.landed = a.landed[:0]
	return true
}

// cameAhead takes a piece for which a receive was posted ahead, and says whether its header has yet to come.
func (s *Side) cameAhead(st *store, p *shard.Piece, w int32) bool {
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

// CloseAhead takes back the receives of pushes that never came.
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

// Idle says that no receive is posted ahead any more.
func (s *Side) Idle() bool { return s.posted == 0 }
