// Package code holds gradient codes (Tandon, Lei, Dimakis, Karampatziakis, ICML 2017, authors' code [A]). It is pure.
//
// The batch of an iteration has n partitions, as many as there are workers. Row i of the n x n matrix B says what worker i computes: it
// pushes one codeword, the sum of B_ij times the gradient of partition j. Every row has s+1 entries. Codewords of any
// n-s workers give the gradient of the whole batch: there are weights a, 0 for all others, with a B = 1. So s workers
// may be slow or lost, and every worker computes s+1 times as much.
//
//	fractional   groups of s+1 workers; all of a group push the same plain sum of the same s+1 partitions, and the first of each
//	             group counts. s+1 must divide n
//	cyclic       worker i has the partitions i ... i+s (mod n); B is drawn so that all of its rows lie in the null space of a random
//	             matrix H whose rows sum to 0
//
// Partial stragglers, which are slow but push in the end, need less than that. They push a private part first, which
// nobody else computes; only the rest of the batch is coded (Private).
//
// Of some random H the weights are so large that rounding errors matter. So the best of several draws is taken, and one whose
// weights are too large is refused.
package code

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Kind is a construction.
type Kind string

// The constructions.
const (
	Auto       Kind = "auto" // fractional where s+1 divides n, else cyclic
	Fractional Kind = "fractional"
	Cyclic     Kind = "cyclic"
)

// Spec is what a code is made from. Equal ones give equal codes.
type Spec struct {
	Kind         Kind
	Workers      int     // n, at least 1
	Stragglers   int     // s, at least 0 and below n
	Draws        int     // of H; at least 1
	ConditionMax float64 // largest weight that is allowed
	Seed         uint64  // of the run
}

// Code is a gradient code.
type Code struct {
	kind       Kind
	n, s       int
	partitions [][]int32   // per worker, its own first
	rows       [][]float64 // per worker: B_ij by position in partitions
	b          *mat.Dense  // nil: fractional
	weightMax  float64
	setsTested int
	alive      []bool // scratch
}

// New makes a code.
func New(s Spec) (*Code, error) {
	n := s.Workers
	if s.Stragglers < 0 || s.Stragglers >= n {
		return nil, fmt.Errorf("%d stragglers of %d workers; at least one worker must answer: set stragglers to 0 to %d", s.Stragglers, n, n-1)
	}
	c := &Code{n: n, s: s.Stragglers, weightMax: 1}
	divides := n%(c.s+1) == 0
	c.kind = kindOf(s)
	for i := range n {
		c.partitions = append(c.partitions, Partitions(s, i))
	}
	if c.kind == Fractional {
		if !divides {
			return nil, fmt.Errorf("fractional repetition has groups of stragglers + 1 = %d workers, which does not divide "+
				"%d workers; change stragglers, start other ranks, or take the cyclic code", c.s+1, n)
		}
		for range n {
			c.rows = append(c.rows, slices.Repeat([]float64{1}, c.s+1))
		}
		return c, nil
	}
	c.drawBest(s)
	if !(c.weightMax <= s.ConditionMax) {
		wayOut := "set fewer stragglers, more draws or a larger condition_max"
		if divides {
			wayOut = "take the fractional code, whose weights are 1"
		}
		return nil, fmt.Errorf("the best of %d cyclic codes for %d workers and %d stragglers has a weight of %.3g, above "+
			"condition_max %g, so rounding errors would grow as much; %s", s.Draws, n, c.s, c.weightMax, s.ConditionMax, wayOut)
	}
	return c, nil
}

func kindOf(s Spec) Kind {
	switch {
	case s.Kind != Auto:
		return s.Kind
	case s.Workers%(s.Stragglers+1) == 0:
		return Fractional
	}
	return Cyclic
}

// Partitions are those that a worker computes, its own first.
func Partitions(s Spec, worker int) (of []int32) {
	size := s.Stragglers + 1
	for j := range size {
		if kindOf(s) == Fractional {
			of = append(of, int32(worker-worker%size+(worker+j)%size))
		} else {
			of = append(of, int32((worker+j)%s.Workers))
		}
	}
	return of
}

// Private is the number of samples of a batch that its worker computes alone, where s stragglers take at most alpha
// times as long as the others, alpha above 1. The paper's workers have (s+1)/(alpha-1) private partitions each beside
// their s+1 coded ones. So a straggler has done its private part when the others have done all. In shares of a batch
// that is (s+1)/(s+alpha); rounded down, because less is private then, not more. A worker without stragglers computes
// (s+1) alpha / (s+alpha) batches an iteration.
func Private(batch, s int, alpha float64) int {
	return int(float64(batch) * float64(s+1) / (float64(s) + alpha))
}

// Kind is the construction; never Auto.
func (c *Code) Kind() Kind { return c.kind }

// WeightMax is the largest absolute weight of a survivor set, over those that were tested, and their number. 0: none had to be tested.
func (c *Code) WeightMax() (weight float64, sets int) { return c.weightMax, c.setsTested }

// Row is what a worker computes, in this order, and the factors of the gradients of these partitions.
func (c *Code) Row(worker int) (partitions []int32, factors []float64) {
	return c.partitions[worker], c.rows[worker]
}

// Decodes says whether the codewords of these workers, in any order, give the gradient of the whole batch.
func (c *Code) Decodes(arrived []int32) bool {
	if c.kind == Cyclic {
		return len(arrived) >= c.n-c.s
	}
	return c.groups(arrived) == c.n/(c.s+1)
}

func (c *Code) groups(arrived []int32) (n int) {
	c.alive = slices.Grow(c.alive[:0], c.n)[:c.n]
	clear(c.alive)
	for _, w := range arrived {
		if g := int(w) / (c.s + 1); !c.alive[g] {
			c.alive[g] = true
			n++
		}
	}
	return n
}

// Weights are those of the codewords of these workers, in order of arrival. Where they do not decode, the weighted
// sum is the nearest to the whole gradient that can be said without knowing the gradients: the least squares of a B -
// 1. For the fractional code that is the sum of the groups that have answered (ErasureHead, Charles, Wang,
// Papailiopoulos [P/T], unscaled).
func (c *Code) Weights(arrived []int32) []float64 {
	if c.kind == Cyclic {
		return c.solve(arrived)
	}
	weights := make([]float64, len(arrived))
	c.groups(nil)
	for i, w := range arrived {
		if g := int(w) / (c.s + 1); !c.alive[g] {
			c.alive[g], weights[i] = true, 1
		}
	}
	return weights
}

// rankLimit is the share of the largest singular value below which one counts as 0.
const rankLimit = 1e-12

// solve finds the weights by least squares in float64. Up to n-s rows of B are independent; of more, the smallest weights are taken.
func (c *Code) solve(arrived []int32) []float64 {
	if len(arrived) == 0 {
		return nil
	}
	m := len(arrived)
	a := mat.NewDense(c.n, m, nil)
	for k, w := range arrived {
		a.SetCol(k, c.b.RawRowView(int(w)))
	}
	ones := mat.NewVecDense(c.n, slices.Repeat([]float64{1}, c.n))
	var x mat.VecDense
	if m <= c.n-c.s {
		var qr mat.QR
		qr.Factorize(a)
		if qr.SolveVecTo(&x, false, ones) == nil {
			return x.RawVector().Data
		}
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		panic(fmt.Sprintf("code: the singular values of %d rows did not converge", m))
	}
	svd.SolveVecTo(&x, ones, svd.Rank(rankLimit))
	return x.RawVector().Data
}
