package workload

import (
	"fmt"
	"math/rand/v2"
)

// Sampler picks the rows of each iteration of one worker. It belongs to one goroutine at a time.
type Sampler struct {
	of     Assignment
	worker uint64  // the seed of all that it picks
	key    uint64  // that of this assignment
	epoch  int64   // whose permutation order holds; -1: none yet
	order  []int32 // rows in the order of that epoch
	source rand.PCG
}

// Assignment is what a worker is given to compute from an iteration on: rows, in batches. All workers come to it at the same
// iteration, at a cut at which nothing is on its way (ps/core/pause.go).
type Assignment struct {
	Number int64   // how many the run has had before; its rows are dealt in an order of their own
	From   int64   // its first iteration
	Rows   []int32 // kept, and not changed
	Batch  int     // rows of one iteration
}

// NewSampler deals rows out in batches of exactly batch rows, from iteration 0 on. It keeps rows and does not change it.
// A worker without rows, or an empty batch, is our bug and panics.
func NewSampler(rows []int32, batch int, seed uint64, worker int) *Sampler {
	s := &Sampler{worker: mix(seed, uint64(worker))}
	s.Assign(Assignment{Rows: rows, Batch: batch})
	return s
}

// Assign has the sampler deal out other rows, or other batches, from an iteration on. One without rows, or of empty batches, is our bug
// and panics.
func (s *Sampler) Assign(a Assignment) {
	if len(a.Rows) == 0 || a.Batch < 1 || a.Number < 0 || a.From < 0 {
		panic(fmt.Sprintf("workload: sampler of %d rows in batches of %d, assignment %d from iteration %d", len(a.Rows), a.Batch, a.Number, a.From))
	}
	s.of, s.key = a, s.worker
	if a.Number > 0 { // the first is what it was before there were others
		s.key = mix(s.worker, uint64(a.Number))
	}
	s.epoch = -1
	s.order = append(s.order[:0], a.Rows...)
}

// Assigned is what the sampler deals out.
func (s *Sampler) Assigned() Assignment { return s.of }

// Batch returns the rows of iteration iter, one of the assignment, in dst's memory where that suffices. The rows are a pure function of
// (seed, worker, assignment, iter): each epoch over the worker's rows is its own permutation, and batches run on from one epoch into
// the next. An iteration before the assignment is our bug and panics.
func (s *Sampler) Batch(iter int64, dst []int32) []int32 {
	if iter < s.of.From {
		panic(fmt.Sprintf("workload: iteration %d of assignment %d, which begins with %d", iter, s.of.Number, s.of.From))
	}
	dst = dst[:0]
	n := int64(len(s.of.Rows))
	for at := (iter - s.of.From) * int64(s.of.Batch); len(dst) < s.of.Batch; {
		s.permute(at / n)
		part := s.order[at%n:]
		part = part[:min(len(part), s.of.Batch-len(dst))]
		dst = append(dst, part...)
		at += int64(len(part))
	}
	return dst
}

// permute makes order that of epoch. It starts from rows each time, so that no epoch depends on
// which one was asked for before.
func (s *Sampler) permute(epoch int64) {
	if s.epoch == epoch {
		return
	}
	copy(s.order, s.of.Rows)
	s.source.Seed(s.key, uint64(epoch))
	shuffle(s.order, &s.source)
	s.epoch = epoch
}
