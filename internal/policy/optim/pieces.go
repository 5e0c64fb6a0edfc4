package optim

import "sort"

// A store does the queued folds in pieces that may run at the same time. Each piece works block by block.

// fold is sums[into] = scale*sums[into] + weight*push. If push is nil, sums[from] takes its place.
type fold struct {
	into, from    int
	push          []float32
	scale, weight float32
	number        int // of a push: how many were folded before it since the last commit
}

// uses says whether f reads or writes accumulator k.
func (f *fold) uses(k int) bool { return f.into == k || f.push == nil && f.from == k }

// work is a commit. If dst is nil, it is a flush, or with norms the sums of squares.
type work struct {
	dst, src []float32
	norms    bool
	local    float32 // in a commit: the rate of the layer
	args     Args    // without Decay
	matrices float32 // rate of matrices, where args have that of the others
	keep     float32 // share of src, if the sums are averaged
	weight   float32 // of the sums, if they are added or averaged
	pieces   int
}

// pieceScratch is the memory of one piece.
type pieceScratch struct {
	block []float32   // a block of sums
	part  [][]float32 // state, cut to a block
	sums  firstBad    // of the sums that the piece made
	step  firstBad    // of what its commit made of them
}

func (s *Store) run(w work) {
	w.pieces = len(s.scratch)
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

// runPiece does piece i of the work. Pieces begin at multiples of 16 elements, so that no two pieces share a cache line.
func (s *Store) runPiece(i int) {
	w, l := &s.work, &s.scratch[i]
	l.sums, l.step = firstBad{}, firstBad{}
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
		end := min((lo+blockElements)&^15, hi) // blocks stay aligned, wherever a run begins
		if w.dst == nil {
			s.flushBlock(lo, end, l)
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
func (s *Store) commitBlock(lo, hi int, q Run, l *pieceScratch) {
	w := &s.work
	pending := s.sumBlock(lo, hi, l.block[:hi-lo], l)
	dst := w.dst[lo:hi]
	switch s.way {
	case Add:
		l.step.note(sumPass(dst, w.src[lo:hi], pending, w.weight, w.args.Stream), lo, dst)
		return
	case Average:
		l.step.note(blend(dst, w.src[lo:hi], pending, w.keep, w.weight), lo, dst)
		return
	case Optimize, Follow:
	}
	for k := range s.state {
		l.part[k] = s.state[k][lo:hi]
	}
	a := w.args
	if s.matrices != nil && q.Rows > 0 { // the step needs all of the matrix
		s.matrices.collect(pending, l.part[0], l.part[1], a.GradScale)
		return
	}
	a.Decay = q.Decay * w.local
	if q.L1 == 0 {
		l.step.note(s.update.Rule.Step(dst, w.src[lo:hi], pending, l.part, a), lo, dst)
		return
	}
	a.Stream = false // shrink reads it again at once
	s.update.Rule.Step(dst, w.src[lo:hi], pending, l.part, a)
	shrink(dst, a.LR*q.L1)
	l.step.note(topPass(dst), lo, dst)
}

// flushBlock does the folds for elements lo to hi, and keeps the pending sums.
func (s *Store) flushBlock(lo, hi int, l *pieceScratch) {
	var block []float32
	if s.sums[0] != nil {
		block = s.sums[0][lo:hi]
	}
	if sums := s.sumBlock(lo, hi, block, l); sums != nil && &sums[0] != &block[0] {
		copy(block, sums)
		l.sums.note(topPass(block), lo, block)
	}
}

// sumBlock does the folds for elements lo to hi and returns their pending sums, which are in block or in other memory of the store.
// If they are a single push, it returns the push without copying it.
func (s *Store) sumBlock(lo, hi int, block []float32, l *pieceScratch) []float32 {
	var sums []float32 // nil: zeros
	if s.held {
		sums = s.sums[0][lo:hi]
	}
	zeros := func() {
		if sums == nil {
			clear(block)
			sums = block
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
			l.sums.note(blend(into, into, from, f.scale, f.weight), lo, into)
			continue
		case f.scale == 0 && f.weight == 1 && f.push != nil:
			sums = from
			continue
		case f.scale == 0: // the earlier sums are not read
			l.sums.note(blend(block, block, from, 0, f.weight), lo, block)
		default:
			zeros()
			l.sums.note(blend(block, sums, from, f.scale, f.weight), lo, block)
		}
		sums = block
	}
	if s.work.dst != nil {
		zeros()
	}
	return sums
}
