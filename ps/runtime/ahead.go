package runtime

import (
	"slices"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// Receives of short pushes are posted before the push is announced. MPI copies a message that finds no receive, and once
// more when one comes; of up to 64 KiB that was measured to cost a tenth of a round.

const (
	aheadMax = 64 << 10 // the longest shard whose pushes are received ahead, in bytes
	// aheadMost bounds the receives that a server posts ahead. Every poll asks MPI about all of them, and was measured to take
	// 0.3 us with 256 and 11 us with 8000 (MPICH: 3 and 88).
	aheadMost = 256
)

// ahead is where the next push of a worker lands, while no header has said that it comes.
type ahead struct {
	buf    *comm.Buf // becomes its slot's memory, and that of the slot this; nil until used
	posted bool      // receives are posted
	ops    []comm.Op // by piece of the shard; 0: none, or it has landed
	landed []int32   // pieces that came before the header, which went on another channel
	due    bool      // it is in serverSide.due
}

// receivesAhead says whether receives of a shard's pushes are posted ahead, n of them: as many as the pieces of all workers
// that do not travel in frames. It takes them from what the server has left of aheadMost. Of a worker that keeps a copy the
// next push may come while the last one lands; what is encoded has a place of its own.
func receivesAhead(c *configs.Config, sh *shard.Shard, copyOf func(rule int) core.Copy, n int, left *int) bool {
	push, _ := encodes(c)
	if push || sh.Bytes() > aheadMax || copyOf(int(sh.Rule)).Kind != scheme.Pulled || n == 0 || n > *left {
		return false
	}
	*left -= n
	return true
}

// openAhead posts receives for the first push of every worker.
func (s *serverSide) openAhead() {
	left := aheadMost
	for _, st := range s.stores {
		if st == nil || !receivesAhead(s.r.cfg, st.sh, s.r.copyOf, len(st.in)*st.bulky[0], &left) {
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
func (s *serverSide) soon(st *store, w int32) {
	if a := &st.ahead[w]; a.ops != nil && !a.due {
		a.due = true
		s.due = append(s.due, due{st, w})
	}
}

// postDue posts what is due. What a fold still reads is left for a later batch, and so is the worker whose push was
// announced meanwhile, and lands now.
func (s *serverSide) postDue() {
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

func (s *serverSide) post(st *store, w int32) {
	a := &st.ahead[w]
	if a.buf == nil {
		b, err := s.r.t.Alloc(int(st.sh.Bytes()))
		if err != nil {
			s.r.fail(err)
			return
		}
		a.buf = b
	}
	a.posted = true
	from := comm.Peer(s.r.roles.Workers[w])
	for i := range st.sh.Pieces {
		if p := &st.sh.Pieces[i]; !s.r.inline[p.ID] {
			off, n := st.at(p)
			a.ops[i] = s.r.t.Irecv(from, comm.Data, tagPush|uint32(p.ID), a.buf, off, n, s.landed)
			s.posted++
		}
	}
}

// stagedAhead gives a slot the memory that its push lands in, if receives were posted. Pieces that have landed are told to
// the node when it has seen the header.
func (s *serverSide) stagedAhead(st *store, e *core.Effect) bool {
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
func (s *serverSide) cameAhead(st *store, p *shard.Piece, w int32) bool {
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

// closeAhead takes back the receives of pushes that never came.
func (s *serverSide) closeAhead() {
	for _, st := range s.stores {
		if st == nil {
			continue
		}
		for w := range st.ahead {
			for _, op := range st.ahead[w].ops {
				if op != 0 {
					s.r.t.Cancel(op)
				}
			}
		}
	}
}

// aheadBytes is the memory of pushes of a shard that are received ahead, where left of aheadMost are left to its server.
func aheadBytes(c *configs.Config, sh *shard.Shard, workers int, left *int) int64 {
	n := 0
	for i := range sh.Pieces {
		if pushBytes(&sh.Pieces[i]) > inlineMax {
			n += workers
		}
	}
	if !receivesAhead(c, sh, func(rule int) core.Copy { return CopyOf(c, rule, workers) }, n, left) {
		return 0
	}
	return int64(workers) * sh.Bytes()
}
