package inproc

import (
	"unsafe"

	"fluentps/internal/comm"
)

// sum is one collective: the ranks' vectors, in the order of ranks.
type sum struct {
	ops    []comm.Op
	spans  [][]float32
	joined int
}

// Iallreduce implements comm.Reducer. The last rank to join adds in the order of ranks, so that the same vectors give
// the same bits whichever rank is last.
func (e *endpoint) Iallreduce(b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckReduce(b, off, n)
	span := comm.Span(b, off, n)
	op := e.ops.Op(e.ops.Put(operation{handler: h, buf: b, from: comm.AnyPeer}))
	w := e.world
	w.mu.Lock()
	e.reduced++
	s := w.sums[e.reduced]
	if s == nil {
		s = &sum{ops: make([]comm.Op, len(w.ranks)), spans: make([][]float32, len(w.ranks))}
		w.sums[e.reduced] = s
	}
	s.ops[e.rank] = op
	s.spans[e.rank] = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(span))), n/4)
	s.joined++
	last := s.joined == len(w.ranks)
	if last {
		delete(w.sums, e.reduced)
	}
	w.mu.Unlock()
	if last {
		s.add()
		for i, to := range w.ranks {
			to.settle(comm.Done{Op: s.ops[i], Peer: comm.AnyPeer, N: n})
		}
	}
	return op
}

// add writes the sum to every rank's memory.
func (s *sum) add() {
	total := s.spans[0]
	for _, v := range s.spans[1:] {
		for i, x := range v {
			total[i] += x
		}
	}
	for _, v := range s.spans[1:] {
		copy(v, total)
	}
}
