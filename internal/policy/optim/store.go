package optim

import (
	"fmt"

	"fluentps/internal/policy/orthogonal"
)

// Run is a range [Lo, Hi) of a shard with the same penalties.
type Run struct {
	Lo, Hi int
	Decay  float32 // weight decay: L2, added to the gradient
	L1     float32 // penalty on the magnitudes, applied by a proximal step of a commit; 0 unless the rule is sgd
	Rows   int     // of the matrix that the run is; 0: it is none. 0 unless the rule is muon
}

// Update says how a commit changes the parameters, and how a worker makes a delta.
type Update struct {
	Rule  Rule
	LR    float64
	Sched Schedule
	// Inner is the rate of the workers' own steps, by the step; nil: they take none.
	Inner func(step float64) float64
	// Others is the rate of muon for what is no matrix.
	Others float64
	// Matrices is memory of muon. What is made from this Update shares it, so it takes turns: the stores of one server, or one worker.
	Matrices *orthogonal.Maker
}

// NewUpdate makes the update of the servers, or of one worker.
func NewUpdate(s Spec, sched Schedule) (Update, error) {
	rule, err := New(s)
	u := Update{Rule: rule, LR: s.LR, Sched: sched}
	if s.Name == "muon" {
		u.Others, u.Matrices = s.Others.LR, orthogonal.NewMaker()
	}
	return u, err
}

// Way says how a commit applies the sums to the parameters.
type Way uint8

const (
	Optimize Way = iota // sums of gradients: the rule takes a step
	Add                 // sums of deltas, which are added
	Average             // sums of values, whose mean replaces the parameters or a share of them
	Follow              // sums of what workers changed in steps of their own: the rule takes a step along them
)

// Store does the arithmetic of one shard on its server: the sums that the scheme names, and the commits that turn them into the next
// version. Versions and staged pushes are in memory of the driver.
//
// Folds are queued and done with the next commit, block by block, so that each push is read once and each version written once.
// The results equal, to the bit, those of doing every fold and commit at once.
type Store struct {
	update Update
	way    Way
	n      int
	runs   []Run       // cover the shard in order; neighbours have different penalties
	sums   [][]float32 // by number, each of n elements; nil until one is written
	held   bool        // sums[0] holds the pending sums; otherwise these are zeros
	queue  []fold      // folds that are not done yet, in order; at most QueueMax
	state  [][]float32
	steps  int64 // commits so far, part of the state: adam's bias correction depends on it

	inner float32 // rate of the workers' own steps before the next commit; 0: they take none

	layer   layerwise // nil unless the rule has a rate for each layer
	squares []squares // per block, of the last norms

	matrices *muon // nil unless the rule takes whole matrices

	parallel func(n int, piece func(i int)) // nil: one piece after the other
	scratch  []pieceScratch                 // for each piece that may run at once
	work     work                           // the current work of the pieces
	piece    func(i int)                    // does piece i of work; made once, so that a commit allocates nothing

	pushes int    // folded since the last commit
	fault  *Fault // the first; nil: all values were finite
}

const (
	// blockElements is the number of elements that are summed at once: 16 KiB, which stay in the first-level cache until they
	// are used.
	blockElements = 4096
	// QueueMax bounds the queue of folds, and so the work that a commit may have to do.
	QueueMax = 8
	// pieceMin is the fewest elements that are worth another core: 1 MiB.
	pieceMin = 1 << 18
	// streamMin is the fewest elements of a version that is written around the caches: 16 MiB. The caches would not keep all of
	// it until the version is sent, and a write into a cache first reads the memory that it overwrites.
	streamMin = 4 << 20
)

// NewStore makes the store of a shard of n elements. With lars the shard must be a layer, and with muon matrices must be whole. runs cover
// the shard, in order. Only Optimize and Follow use the rule.
func NewStore(n int, runs []Run, u Update, way Way) *Store {
	s := &Store{update: u, way: way, n: n, sums: make([][]float32, 1), queue: make([]fold, 0, QueueMax)}
	switch way {
	case Optimize:
		s.runs = merged(runs)
		s.state = vectors(u.Rule.State(), n)
	case Follow: // the workers have applied all penalties
		s.runs = []Run{{Hi: n}}
		s.state = vectors(u.Rule.State(), n)
	case Add, Average:
		s.runs = []Run{{Hi: n}}
	}
	s.makeLayerwise()
	s.makeMatrices()
	s.piece = s.runPiece
	s.Spread(1, nil)
	return s
}

// merged joins neighbours with the same penalties, unless one is a matrix.
func merged(runs []Run) (out []Run) {
	for _, q := range runs {
		if k := len(out) - 1; k >= 0 && out[k].Decay == q.Decay && out[k].L1 == q.L1 && out[k].Rows == 0 && q.Rows == 0 {
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

// Spread cuts each large commit or flush into up to n pieces, of 1 MiB or more each. parallel(k, piece) must call piece(i) for each
// i below k, in any order or at the same time, and return when all have returned. The number of pieces does not change a bit.
func (s *Store) Spread(n int, parallel func(n int, piece func(i int))) {
	s.parallel, s.scratch = parallel, make([]pieceScratch, piecesOf(s.n, n))
	if s.matrices != nil {
		s.update.Matrices.Spread(n, parallel)
	}
	for i := range s.scratch {
		s.scratch[i] = pieceScratch{block: make([]float32, min(s.n, blockElements)), part: make([][]float32, len(s.state))}
	}
}

func piecesOf(elements, n int) int { return max(1, min(n, elements/pieceMin)) }

// SpreadBytes is the memory that a Store of so many elements takes in addition to its vectors after Spread with n.
func SpreadBytes(elements, n int) int64 {
	return 4 * int64(piecesOf(elements, n)) * int64(min(elements, blockElements))
}

// Fold is Sums(into) = scale*Sums(into) + weight*push; scale 0 overwrites. The push, of n elements, is borrowed: it must stay
// unchanged until the next Commit, Flush or Sums has returned. A version must not be in the same memory.
func (s *Store) Fold(into int, push []float32, scale, weight float64) {
	if len(push) != s.n {
		panic(fmt.Sprintf("optim: fold of a push of %d elements in a shard of %d", len(push), s.n))
	}
	s.enqueue(fold{into: into, push: push, scale: float32(scale), weight: float32(weight), number: s.pushes})
	s.pushes++
}

// FoldSums is Sums(into) = scale*Sums(into) + weight*Sums(from); scale 0 overwrites.
func (s *Store) FoldSums(into, from int, scale, weight float64) {
	s.allot(from)
	s.enqueue(fold{into: into, from: from, scale: float32(scale), weight: float32(weight)})
}

func (s *Store) enqueue(f fold) {
	s.allot(f.into)
	if len(s.queue) == QueueMax {
		s.Flush()
	}
	s.queue = append(s.queue, f)
}

// allot allocates the memory of accumulator k. The pending sums get none until they must outlive a fold, because mostly the commit
// follows at once.
func (s *Store) allot(k int) {
	for k >= len(s.sums) {
		s.sums = append(s.sums, nil)
	}
	if k > 0 && s.sums[k] == nil {
		s.sums[k] = make([]float32, s.n)
	}
}

// Flush does the queued folds. Afterwards no push is borrowed.
func (s *Store) Flush() {
	if len(s.queue) == 0 {
		return
	}
	for i := range s.queue {
		if s.queue[i].uses(0) && s.sums[0] == nil {
			s.sums[0] = make([]float32, s.n)
		}
	}
	s.run(work{})
	s.look(&work{})
	for i := range s.queue {
		s.held = s.held || s.queue[i].uses(0)
	}
	s.empty()
}

func (s *Store) empty() {
	clear(s.queue) // drops the references to pushes
	s.queue = s.queue[:0]
}

// Sums returns accumulator k of the shard after a Flush. Accumulator 0 holds the pending sums, the scheme names the others. An
// unused accumulator holds zeros, and so do the pending sums after a Commit. The caller may write to it until the next Commit.
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

// State returns the state that outlives commits, in addition to the versions: the vectors of the rule, n elements each, in its
// order, and the number of commits. The vectors are not copies: a commit changes them. Pending sums are not part of the state.
func (s *Store) State() (vectors [][]float32, steps int64) { return s.state, s.steps }

// Resume sets the number of earlier commits. It is called before the first commit. The vectors of State are written in place.
func (s *Store) Resume(steps int64) { s.steps = steps }

// After tells the store how many steps each worker has taken before the next commit. It must be called before every commit where the
// workers take steps of their own.
func (s *Store) After(steps float64) {
	if s.update.Inner != nil {
		s.inner = float32(s.update.Inner(steps))
	}
}

// Rate is the learning rate of a commit at that clock, in iterations, before the weight of the push.
func (s *Store) Rate(clock float64) float64 { return s.update.Rate(clock) }

// Shown is the learning rate to report with a commit: that of gradients, so of the workers' own steps where they take any.
func (s *Store) Shown(clock float64) float64 {
	if s.way == Follow {
		return float64(s.inner)
	}
	return s.Rate(clock)
}

// Commit writes the version that follows src to dst. With Optimize that is the rule's step along weight * pending at scale times
// the rate of that clock, and with Follow its step along the changes. With Add it is src + scale * weight * pending.
// With Average it is (1-scale) * src + scale * weight * pending; a scale above 1 counts as 1, so that the parameters
// stay between the pushed values. Afterwards the pending sums are zeros, and no push is borrowed. dst and src must
// have n elements; otherwise it panics. dst may be src.
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
	case Follow:
		w.args.LR, w.args.GradScale, w.args.Inner = float32(s.Rate(clock)*scale), -float32(weight), s.inner
	}
	if s.matrices != nil {
		w.matrices, w.args.LR = w.args.LR, float32(s.update.Others*s.update.Sched.Scale(clock)*scale)
	}
	s.run(w)
	s.stepMatrices(&w)
	s.look(&w)
	s.held, s.pushes = false, 0
	s.empty()
}
