package work

import (
	"fmt"
	"math"
	"slices"
)

// Split deals total samples by weights: worker i gets about weights[i] / sum of them, at least least and at most
// most. What is cut off goes to the others in proportion. Fractions are rounded by largest remainder, ties to the
// lower rank. A weight of 0 gets nothing. It panics if the limits leave no solution, or a weight is negative or not
// finite.
func Split(total int, weights []float64, least, most int) []int {
	share := make([]int, len(weights))
	var free []int // workers that are not at a limit
	left := total
	for i, w := range weights {
		if w < 0 || math.IsInf(w, 0) || math.IsNaN(w) {
			panic(fmt.Sprintf("work: weight %g of worker %d", w, i))
		}
		if w > 0 {
			free = append(free, i)
		}
	}
	if n := len(free); n == 0 || total < n*least || most < least || float64(total) > float64(n)*float64(most) {
		panic(fmt.Sprintf("work: %d samples for %d workers, %d to %d each", total, n, least, most))
	}
	sum := 0.0 // of the weights of free
	exact := func(i int) float64 { return float64(left) * weights[i] / sum }
	for len(free) > 0 {
		sum = sumOf(weights, free)
		var above, below float64 // what the limits cut off, and what they add
		for _, i := range free {
			above += max(0, exact(i)-float64(most))
			below += max(0, float64(least)-exact(i))
		}
		if above == 0 && below == 0 {
			break
		}
		limit, out := most, func(i int) bool { return exact(i) >= float64(most) }
		if below > above {
			limit, out = least, func(i int) bool { return exact(i) <= float64(least) }
		}
		var at []int
		for _, i := range free {
			if out(i) {
				at = append(at, i)
			}
		}
		for _, i := range at {
			share[i] = limit
			left -= limit
		}
		free = slices.DeleteFunc(free, func(i int) bool {
			_, limited := slices.BinarySearch(at, i)
			return limited
		})
	}
	round(share, free, left, exact, most)
	return share
}

// round deals what is left among the free workers by largest remainder.
func round(share, free []int, left int, exact func(int) float64, most int) {
	y := make([]float64, len(share))
	for _, i := range free {
		y[i] = exact(i)
		share[i] = int(y[i])
	}
	order := slices.Clone(free)
	slices.SortStableFunc(order, func(i, j int) int {
		// A thousandth of a billionth apart is equal: it is rounding of the weights.
		if a, b := y[i]-float64(share[i]), y[j]-float64(share[j]); math.Abs(a-b) > 1e-9*(1+y[i]+y[j]) {
			if a > b {
				return -1
			}
			return 1
		}
		return i - j
	})
	for _, i := range free {
		left -= share[i]
	}
	for left > 0 {
		for _, i := range order {
			if left > 0 && share[i] < most {
				share[i]++
				left--
			}
		}
	}
}

func sumOf(weights []float64, of []int) (sum float64) {
	for _, i := range of {
		sum += weights[i]
	}
	return sum
}

// EpochIterations is the number of iterations of one pass over the rows by so many workers. What whole batches leave
// is an iteration of its own, if it has a row for each worker; else the last batches are larger by a row, so that
// nobody is ever without a sample.
func EpochIterations(rows, batch, workers int) int64 {
	whole, left := rows/batch, rows%batch
	if whole == 0 || left >= workers {
		whole++
	}
	return int64(whole)
}

// Rows returns how many rows each worker has under a plan. Over an epoch it is the sum of its batches; else it is in proportion to them.
func (p *Plan) Rows(rows int) []int {
	batch, workers := 0, 0
	weights := make([]float64, len(p.Batches))
	for i, b := range p.Batches {
		batch += b
		if weights[i] = float64(b); b > 0 {
			workers++
		}
	}
	if !p.Epoch {
		return Split(rows, weights, 1, rows)
	}
	whole, left := rows/batch, rows%batch
	of := make([]int, len(p.Batches))
	switch {
	case left > 0 && EpochIterations(rows, batch, workers) == int64(whole):
		of = Split(left, weights, 0, 1)
	case left > 0:
		of = Split(left, weights, 1, slices.Max(p.Batches))
	}
	for i, b := range p.Batches {
		of[i] += whole * b
	}
	return of
}

// Samples is the batch of a worker in an iteration of the assignment, out of so many rows, which are always the same.
func (a *Assignment) Samples(worker int, iter int64, rows int) int {
	if !a.Epoch || iter+1 < a.Until {
		return a.Batches[worker]
	}
	return a.lastBatches(rows)[worker]
}

// lastBatches are the batches of the last iteration of an epoch, computed once.
func (a *Assignment) lastBatches(rows int) []int {
	if a.last == nil {
		p := a.Plan()
		a.last = p.Rows(rows)
		for i, b := range a.Batches {
			a.last[i] -= int(p.Iterations-1) * b
		}
	}
	return a.last
}
