package dataset

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"fluentps/ps/workload/dataset/draw"
)

// Sampler picks the rows of each iteration of one worker. It belongs to one goroutine at a time.
type Sampler struct {
	current Assignment
	worker  uint64  // the seed of this worker
	key     uint64  // the seed of the current assignment
	epoch   int64   // the epoch of order; -1: none yet
	order   []int32 // rows, in the order of that epoch
	source  rand.PCG
	window  int     // so many rows are shuffled together; 0: all
	sorted  []int32 // with a window: the rows of the assignment, ascending
	blocks  []int32 // scratch: numbers of blocks
}

// Assignment is the rows, in batches, that a worker computes from an iteration on. All workers get theirs at the same iteration, at a
// cut at which nothing is in flight (internal/core/servernode/stop.go).
type Assignment struct {
	Number int64   // number of earlier assignments in the run; each has its own order of rows
	From   int64   // its first iteration
	Rows   []int32 // kept, and not changed
	Batch  int     // rows of one iteration
	// Pass is the number of iterations that an epoch over Rows takes. Its last batch is what is left then: some rows, at
	// most one more than Batch. 0: every batch has Batch rows, and may extend from one epoch into the next.
	Pass int64
}

// NewSampler makes a sampler that deals out rows in batches of exactly batch rows, from iteration 0 on. It keeps rows and does not
// change it. It panics without rows, or with an empty batch.
func NewSampler(rows []int32, batch int, seed uint64, worker int) *Sampler {
	s := &Sampler{worker: draw.Mix(seed, uint64(worker))}
	s.Assign(Assignment{Rows: rows, Batch: batch})
	return s
}

// blocksOfWindow is how many blocks of rows that lie together are shuffled together. More mix rows better, and make blocks shorter, and
// with them what is read in one part.
const blocksOfWindow = 32

// Within makes the sampler shuffle so many rows together, 0: all. A window of rows is made of blocks of the rows in ascending order, which
// is that of the file, drawn at random: an epoch still has each row once, and batches are still a pure function of (seed, worker,
// assignment, iteration), but batches that follow each other touch few parts of the file.
func (s *Sampler) Within(window int) *Sampler {
	s.window = window
	s.Assign(s.current)
	return s
}

// Assign makes the sampler deal out other rows, or other batches, from an iteration on. It panics without rows, or with an empty
// batch.
func (s *Sampler) Assign(a Assignment) {
	left := int64(len(a.Rows)) - (a.Pass-1)*int64(a.Batch) // for the last batch of a pass
	if len(a.Rows) == 0 || a.Batch < 1 || a.Number < 0 || a.From < 0 || a.Pass < 0 || a.Pass > 0 && (left < 1 || left > int64(a.Batch)+1) {
		panic(fmt.Sprintf("dataset: sampler of %d rows in batches of %d, assignment %d from iteration %d, passes of %d "+
			"iterations", len(a.Rows), a.Batch, a.Number, a.From, a.Pass))
	}
	s.current, s.key = a, s.worker
	if a.Number > 0 { // the first assignment keeps the order from before there were assignments
		s.key = draw.Mix(s.worker, uint64(a.Number))
	}
	s.epoch = -1
	if cap(s.order) < len(a.Rows) {
		s.order = make([]int32, 0, len(a.Rows)) // append alone would take up to a quarter more
	}
	s.order = append(s.order[:0], a.Rows...)
	if s.window > 0 && s.window < len(a.Rows) {
		s.sorted = append(s.sorted[:0], a.Rows...)
		slices.Sort(s.sorted)
	}
}

// Assigned is the current assignment.
func (s *Sampler) Assigned() Assignment { return s.current }

// Batch returns the rows of iteration iter of the assignment, in the memory of dst if that suffices. The rows are a pure function of
// (seed, worker, assignment, iter): each epoch over the worker's rows is its own permutation, and a batch may extend from one epoch
// into the next. It panics for an iteration before the assignment.
func (s *Sampler) Batch(iter int64, dst []int32) []int32 {
	if iter < s.current.From {
		panic(fmt.Sprintf("dataset: iteration %d of assignment %d, which begins with %d", iter, s.current.Number, s.current.From))
	}
	dst = dst[:0]
	n := int64(len(s.current.Rows))
	if pass := s.current.Pass; pass > 0 {
		k := (iter - s.current.From) % pass
		s.permute((iter - s.current.From) / pass)
		end := n
		if k < pass-1 {
			end = (k + 1) * int64(s.current.Batch)
		}
		return append(dst, s.order[k*int64(s.current.Batch):end]...)
	}
	for at := (iter - s.current.From) * int64(s.current.Batch); len(dst) < s.current.Batch; {
		s.permute(at / n)
		part := s.order[at%n:]
		part = part[:min(len(part), s.current.Batch-len(dst))]
		dst = append(dst, part...)
		at += int64(len(part))
	}
	return dst
}

// permute sets order for an epoch. It starts from the rows each time, so that the order does not depend on the epoch before.
func (s *Sampler) permute(epoch int64) {
	if s.epoch == epoch {
		return
	}
	s.source.Seed(s.key, uint64(epoch))
	if s.window > 0 && s.window < len(s.current.Rows) {
		s.permuteWindows()
	} else {
		copy(s.order, s.current.Rows)
		shuffle(s.order, &s.source)
	}
	s.epoch = epoch
}

// permuteWindows sets order to blocks in random order, and shuffles each window of them.
func (s *Sampler) permuteWindows() {
	size := (s.window + blocksOfWindow - 1) / blocksOfWindow
	s.blocks = s.blocks[:0]
	for b := 0; b*size < len(s.sorted); b++ {
		s.blocks = append(s.blocks, int32(b))
	}
	shuffle(s.blocks, &s.source)
	s.order = s.order[:0]
	for _, b := range s.blocks {
		from := int(b) * size
		s.order = append(s.order, s.sorted[from:min(len(s.sorted), from+size)]...)
	}
	for from := 0; from < len(s.order); from += s.window {
		shuffle(s.order[from:min(len(s.order), from+s.window)], &s.source)
	}
}

// shuffle permutes p at random (Fisher and Yates). It does not use Shuffle of math/rand/v2, because that may change between Go
// versions, and runs are reproducible across them. The generators of math/rand/v2 do not change.
func shuffle(p []int32, r *rand.PCG) {
	for i := len(p) - 1; i > 0; i-- {
		j, _ := bits.Mul64(r.Uint64(), uint64(i+1))
		p[i], p[j] = p[j], p[i]
	}
}
