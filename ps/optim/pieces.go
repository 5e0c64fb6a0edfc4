package optim

import "sort"

// How a store does what is queued: in pieces that may run at the same time, each block by block.

// fold is sums[into] = scale*sums[into] + weight*push, or weight*sums[from] where push is nil.
type fold struct {
	into, from    int
	push          []float32
	scale, weight float32
}

func (f *fold) names(k int) bool { return f.into == k || f.push == nil && f.from == k }

// work is a commit, or where dst is nil a flush or with norms the sums of squares.
type work struct {
	dst, src []float32
	norms    bool
	local    float32 // of a commit: the layer's own rate
	args     Args    // but for Decay
	keep     float32 // share of src, where the sums are averaged
	weight   float32 // of the sums, where they are added or averaged
	pieces   int
}

// lane is the memory of one piece.
type lane struct {
	room []float32   // a block of sums
	part [][]float32 // state, cut to a block
}

func (s *Store) run(w work) {
	w.pieces = len(s.lanes)
	s.work = w
	if w.pieces == 1 || s.parallel == nil {
		for i := range w.pieces {
			s.runPiece(i)
		}
	} else {
		s.parallel(w.pieces, s.piece)
	}
	s.work = work{}
}

// runPiece does piece i of the work. Pieces begin at multiples of 16 elements, so that no cache line belongs to two.
func (s *Store) runPiece(i int) {
	w, l := &s.work, &s.lanes[i]
	if w.norms {
		s.squarePiece(i)
		return
	}
	bound := func(i int) int {
		if i == w.pieces {
			return s.n
		}
		return s.n * i / w.pieces &^ 15
	}
	lo, hi := bound(i), bound(i+1)
	r := sort.Search(len(s.runs), func(k int) bool { return s.runs[k].Hi > lo })
	for lo < hi {
		end := min((lo+blockElements)&^15, hi) // aligned, wherever a run begins
		if w.dst == nil {
			s.flushBlock(lo, end)
		} else {
			q := s.runs[r]
			if q.Hi <= end {
				end = q.Hi
				r++
			}
			s.commitBlock(lo, end, q, l)
		}
		lo = end
	}
}

// commitBlock commits elements lo to hi, which lie in run q.
func (s *Store) commitBlock(lo, hi int, q Run, l *lane) {
	w := &s.work
	pending := s.sumBlock(lo, hi, l.room[:hi-lo])
	switch s.way {
	case Add:
		sumPass(w.dst[lo:hi], w.src[lo:hi], pending, w.weight, w.args.Stream)
		return
	case Average:
		blend(w.dst[lo:hi], w.src[lo:hi], pending, w.keep, w.weight)
		return
	case Optimize:
	}
	for k := range s.state {
		l.part[k] = s.state[k][lo:hi]
	}
	a := w.args
	a.Decay = q.Decay * w.local
	if q.L1 == 0 {
		s.update.Rule.Step(w.dst[lo:hi], w.src[lo:hi], pending, l.part, a)
		return
	}
	a.Stream = false // it is read again at once
	s.update.Rule.Step(w.dst[lo:hi], w.src[lo:hi], pending, l.part, a)
	shrink(w.dst[lo:hi], a.LR*q.L1)
}

// flushBlock does the folds for elements lo to hi, and keeps the pending sums.
func (s *Store) flushBlock(lo, hi int) {
	var room []float32
	if s.sums[0] != nil {
		room = s.sums[0][lo:hi]
	}
	if sums := s.sumBlock(lo, hi, room); sums != nil && &sums[0] != &room[0] {
		copy(room, sums)
	}
}

// sumBlock does the folds for elements lo to hi, and returns the pending sums of these: in room, or where they are. A push
// that is all there is is not copied.
func (s *Store) sumBlock(lo, hi int, room []float32) []float32 {
	var sums []float32 // nil: zeros
	if s.held {
		sums = s.sums[0][lo:hi]
	}
	zeros := func() {
		if sums == nil {
			clear(room)
			sums = room
		}
	}
	for i := range s.queue {
		f := &s.queue[i]
		var from []float32
		switch {
		case f.push != nil:
			from = f.push[lo:hi]
		case f.from > 0:
			from = s.sums[f.from][lo:hi]
		default:
			zeros()
			from = sums
		}
		switch {
		case f.into > 0:
			into := s.sums[f.into][lo:hi]
			blend(into, into, from, f.scale, f.weight)
			continue
		case f.scale == 0 && f.weight == 1 && f.push != nil:
			sums = from
			continue
		case f.scale == 0: // nothing is read of what was there
			blend(room, room, from, 0, f.weight)
		default:
			zeros()
			blend(room, sums, from, f.scale, f.weight)
		}
		sums = room
	}
	if s.work.dst != nil {
		zeros()
	}
	return sums
}
