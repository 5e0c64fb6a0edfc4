package optim

import "fmt"

// Run is a stretch [Lo, Hi) of a shard with the same penalties.
type Run struct {
	Lo, Hi int
	Decay  float32 // weight decay: L2, added to the gradient
	L1     float32 // of the magnitudes, taken by a proximal step; 0 unless the rule is sgd and a commit takes it
}

// Update says how a commit changes the parameters, and how a worker makes a delta.
type Update struct {
	Rule  Rule
	LR    float64
	Sched Schedule
}

// Way is what a commit makes of the sums.
type Way uint8

const (
	Optimize Way = iota // they are of gradients: the step of the rule
	Add                 // they are of deltas, which are added
	Average             // they are of values, whose mean takes the place of the parameters, or of a share of them
)

// Store is the arithmetic of one shard on its server: the sums that the scheme names, and how a commit turns them
// into the next version. Versions and staged pushes are the driver's memory.
//
// Folds are queued and done with the commit that follows, block by block, so that each push is read once and each
// version written once. The results equal, to the bit, those of doing every fold and commit at once.
type Store struct {
	update Update
	way    Way
	n      int
	runs   []Run       // cover the shard in order; neighbours have different penalties
	sums   [][]float32 // by number, each of n elements; nil until one is written
	held   bool        // sums[0] is the pending sums; else these are zeros
	queue  []fold      // not done yet, in order; at most foldsMax
	state  [][]float32
	steps  int64 // commits so far: state like the vectors, which adam's bias correction goes on from

	layer   layerwise // nil unless the rule has a rate for each layer
	squares []squares // of each block, of its last norms

	parallel func(n int, piece func(i int)) // nil: one piece after the other
	lanes    []lane                         // the memory of each piece that may run at once
	work     work                           // what the pieces do
	piece    func(i int)                    // does piece i of work; made once, so that a commit allocates nothing
}

const (
	// blockElements is how many elements are summed at once: 16 KiB, which stay in the first-level cache until they are used.
	blockElements = 4096
	// foldsMax bounds the queue, and so how much a commit may have to catch up with.
	foldsMax = 8
	// pieceMin is how many elements are worth another core: 1 MiB.
	pieceMin = 1 << 18
	// streamMin is how many elements of a version are written around the caches: 16 MiB. They would not all be there when
	// the version is sent, and a write into a cache first reads what is to be overwritten.
	streamMin = 4 << 20
)

// NewStore makes the store of a shard of n elements, which with lars is a layer. runs cover it, in order. The rule is of
// Optimize only.
func NewStore(n int, runs []Run, u Update, way Way) *Store {
	s := &Store{update: u, way: way, n: n, sums: make([][]float32, 1), queue: make([]fold, 0, foldsMax)}
	if way != Optimize {
		s.runs = []Run{{Hi: n}}
	} else {
		s.runs = merged(runs)
		s.state = vectors(u.Rule.State(), n)
	}
	s.makeLayerwise()
	s.piece = s.runPiece
	s.Spread(1, nil)
	return s
}

// merged joins neighbours with the same penalties.
func merged(runs []Run) (out []Run) {
	for _, q := range runs {
		if k := len(out) - 1; k >= 0 && out[k].Decay == q.Decay && out[k].L1 == q.L1 {
			out[k].Hi = q.Hi
		} else if q.Lo < q.Hi {
			out = append(out, q)
		}
	}
	return out
}

func vectors(k, n int) [][]float32 {
	v := make([][]float32, k)
	for i := range v {
		v[i] = make([]float32, n)
	}
	return v
}

// Spread lets a large commit or flush be cut into up to n pieces, of 1 MiB or more each. parallel(k, piece) must call
// piece(i) for each i below k, in any order and also at the same time, and return when all have returned. How it is cut
// does not change a bit.
func (s *Store) Spread(n int, parallel func(n int, piece func(i int))) {
	s.parallel, s.lanes = parallel, make([]lane, lanesOf(s.n, n))
	for i := range s.lanes {
		s.lanes[i] = lane{room: make([]float32, min(s.n, blockElements)), part: make([][]float32, len(s.state))}
	}
}

func lanesOf(elements, n int) int { return max(1, min(n, elements/pieceMin)) }

// SpreadBytes is the memory that a Store of so many elements takes beside its vectors where Spread was told n.
func SpreadBytes(elements, n int) int64 {
	return 4 * int64(lanesOf(elements, n)) * int64(min(elements, blockElements))
}

// Fold is Sums(into) = scale*Sums(into) + weight*push; scale 0 overwrites. The push, of n elements, is borrowed: it must
// stay as it is until the next Commit, Flush or Sums has returned. A version may not lie in its memory.
func (s *Store) Fold(into int, push []float32, scale, weight float64) {
	if len(push) != s.n {
		panic(fmt.Sprintf("optim: fold of a push of %d elements in a shard of %d", len(push), s.n))
	}
	s.enqueue(fold{into: into, push: push, scale: float32(scale), weight: float32(weight)})
}

// FoldSums is Sums(into) = scale*Sums(into) + weight*Sums(from); scale 0 overwrites.
func (s *Store) FoldSums(into, from int, scale, weight float64) {
	s.allot(from)
	s.enqueue(fold{into: into, from: from, scale: float32(scale), weight: float32(weight)})
}

func (s *Store) enqueue(f fold) {
	s.allot(f.into)
	if len(s.queue) == foldsMax {
		s.Flush()
	}
	s.queue = append(s.queue, f)
}

// allot gives accumulator k its memory. The pending sums have none until they must outlive a fold: mostly the commit
// comes first.
func (s *Store) allot(k int) {
	for k >= len(s.sums) {
		s.sums = append(s.sums, nil)
	}
	if k > 0 && s.sums[k] == nil {
		s.sums[k] = make([]float32, s.n)
	}
}

// Flush does the folds that are queued. Afterwards no push is borrowed.
func (s *Store) Flush() {
	if len(s.queue) == 0 {
		return
	}
	for i := range s.queue {
		if s.queue[i].names(0) && s.sums[0] == nil {
			s.sums[0] = make([]float32, s.n)
		}
	}
	s.run(work{})
	for i := range s.queue {
		s.held = s.held || s.queue[i].names(0)
	}
	s.empty()
}

func (s *Store) empty() {
	clear(s.queue) // of references to pushes
	s.queue = s.queue[:0]
}

// Sums is accumulator k of the shard, after a Flush: 0 holds the pending sums, others are named by the scheme. An
// accumulator that was not used yet holds zeros; so do the pending sums after a Commit. It may be written to until the
// next Commit.
func (s *Store) Sums(k int) []float32 {
	s.Flush()
	s.allot(k)
	if k == 0 && !s.held {
		if s.sums[0] == nil {
			s.sums[0] = make([]float32, s.n)
		}
		clear(s.sums[0])
		s.held = true
	}
	return s.sums[k]
}

// State is what outlives commits beside the versions: the vectors of the rule, n elements each, in its order, and the
// number of commits. They are the store's own: a commit changes them. Pending sums are no part of it.
func (s *Store) State() (vectors [][]float32, steps int64) { return s.state, s.steps }

// Resume makes the store go on behind so many commits, before its first; the vectors of State are written in place.
func (s *Store) Resume(steps int64) { s.steps = steps }

// Rate is the learning rate of a commit at that clock, in iterations, before the weight of the push.
func (s *Store) Rate(clock float64) float64 { return s.update.LR * s.update.Sched.Scale(clock) }

// Commit writes the version that follows src to dst: the rule's step along weight * pending at scale times the
// rate of that clock; with Add, src + scale * weight * pending; with Average, (1-scale) * src + scale * weight * pending,
// where a scale above 1 counts as 1, so that what lies between the values pushed stays between them. It uses the pending sums up: they are zeros then, and
// no push is borrowed any more. dst and src have n elements, else it panics; dst may be src.
func (s *Store) Commit(dst, src []float32, clock, scale, weight float64) {
	if len(dst) != s.n || len(src) != s.n {
		panic(fmt.Sprintf("optim: commit of %d elements from %d in a shard of %d", len(dst), len(src), s.n))
	}
	local := s.localRate(src, weight)
	w := work{dst: dst, src: src, local: float32(local)}
	s.steps++
	w.args.Step = s.steps
	w.args.Stream = s.n >= streamMin && &dst[0] != &src[0]
	switch s.way {
	case Add:
		w.weight = float32(scale * weight)
	case Average:
		w.keep, w.weight = shares(scale, weight)
	case Optimize:
		w.args.LR, w.args.GradScale = float32(s.Rate(clock)*scale), float32(weight*local)
	}
	s.run(w)
	s.held = false
	s.empty()
}
