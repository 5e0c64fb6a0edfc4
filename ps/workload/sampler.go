package workload

import (
	"fmt"
	"math/rand/v2"
)

// Sampler picks the rows of each iteration of one worker. It belongs to one goroutine at a time.
type Sampler struct {
	rows   []int32
	batch  int
	key    uint64
	epoch  int64   // whose permutation order holds; -1: none yet
	order  []int32 // rows in the order of that epoch
	source rand.PCG
}

// NewSampler deals rows out in batches of exactly batch rows. It keeps rows and does not change it.
// A worker without rows, or an empty batch, is our bug and panics.
func NewSampler(rows []int32, batch int, seed uint64, worker int) *Sampler {
	if len(rows) == 0 || batch < 1 {
		panic(fmt.Sprintf("workload: sampler of %d rows in batches of %d", len(rows), batch))
	}
	return &Sampler{
		rows: rows, batch: batch, key: mix(seed, uint64(worker)),
		epoch: -1, order: make([]int32, len(rows)),
	}
}

// Batch returns the rows of iteration iter, 0 or later, in dst's memory where that suffices. The
// rows are a pure function of (seed, worker, iter): each epoch over the worker's rows is its own
// permutation, and batches run on from one epoch into the next.
func (s *Sampler) Batch(iter int64, dst []int32) []int32 {
	dst = dst[:0]
	n := int64(len(s.rows))
	for at := iter * int64(s.batch); len(dst) < s.batch; {
		s.permute(at / n)
		part := s.order[at%n:]
		part = part[:min(len(part), s.batch-len(dst))]
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
	copy(s.order, s.rows)
	s.source.Seed(s.key, uint64(epoch))
	shuffle(s.order, &s.source)
	s.epoch = epoch
}
