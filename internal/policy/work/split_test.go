package work

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// level is Split once more: the level at which min(most, max(least, level * weight)) add up, found by bisection, and
// then the largest remainders one by one.
func level(total int, weights []float64, least, most int) []int {
	at := func(l float64, w float64) float64 {
		if w == 0 {
			return 0
		}
		return min(float64(most), max(float64(least), l*w))
	}
	lo, hi := 0.0, 1e30
	for range 400 {
		mid := math.Sqrt(max(lo, 1e-30) * hi)
		sum := 0.0
		for _, w := range weights {
			sum += at(mid, w)
		}
		if sum < float64(total) {
			lo = mid
		} else {
			hi = mid
		}
	}
	share := make([]int, len(weights))
	left := total
	for i, w := range weights {
		share[i] = int(at(hi, w) + 1e-7)
		left -= share[i]
	}
	given := make([]bool, len(weights))
	for ; left > 0; left-- {
		best := -1
		for i, w := range weights {
			if w == 0 || given[i] || share[i] >= most {
				continue
			}
			if best < 0 || at(hi, w)-float64(share[i]) > at(hi, weights[best])-float64(share[best])+1e-7 {
				best = i
			}
		}
		if best < 0 {
			clear(given)
			left++
			continue
		}
		share[best]++
		given[best] = true
	}
	return share
}

// limits draws an instance of Split.
func limits(t *rapid.T) (total int, weights []float64, least, most int) {
	n := rapid.IntRange(1, 12).Draw(t, "workers")
	weights = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.001, 0.5, 1, 1, 2, 3, 7.25, 1000}), n, n).Draw(t, "weights")
	free := 0
	for _, w := range weights {
		if w > 0 {
			free++
		}
	}
	if free == 0 {
		weights[0], free = 1, 1
	}
	least = rapid.IntRange(0, 3).Draw(t, "least")
	most = least + rapid.IntRange(1, 200).Draw(t, "most")
	return rapid.IntRange(free*least, free*most).Draw(t, "total"), weights, least, most
}

func TestSplitIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, weights, least, most := limits(t)
		got, want := Split(total, weights, least, most), level(total, weights, least, most)
		sum := 0
		for i, n := range got {
			sum += n
			switch {
			case weights[i] == 0 && n != 0, weights[i] > 0 && (n < least || n > most):
				t.Fatalf("%v of %d, %d to %d each: %v", weights, total, least, most, got)
			case n-want[i] > 1 || want[i]-n > 1: // ties of rounding may fall either way
				t.Fatalf("%v of %d, %d to %d each: %v, its twin %v", weights, total, least, most, got, want)
			}
			for j, m := range got {
				if weights[i] > weights[j] && n < m || weights[i] == weights[j] && i < j && n < m {
					t.Fatalf("%v of %d, %d to %d each: %v: worker %d is before worker %d", weights, total, least, most, got, i, j)
				}
			}
		}
		if sum != total {
			t.Fatalf("%v of %d: %v adds up to %d", weights, total, got, sum)
		}
	})
}

func TestSplitByHand(t *testing.T) {
	for _, c := range []struct {
		total       int
		weights     []float64
		least, most int
		want        []int
	}{
		{512, []float64{1, 1, 1, 1.0 / 3}, 1, 512, []int{154, 154, 153, 51}}, // fractions .6 .6 .6 .2, and two samples left
		{512, []float64{3, 3, 3, 1}, 1, 512, []int{154, 154, 153, 51}},
		{8, []float64{1000, 1, 1, 1}, 1, 8, []int{5, 1, 1, 1}},
		{8, []float64{1000, 1, 1, 1}, 1, 3, []int{3, 2, 2, 1}},
		{3, []float64{0, 1, 1}, 1, 3, []int{0, 2, 1}},
		{0, []float64{1, 2}, 0, 1, []int{0, 0}},
		{10, []float64{1, 1, 1}, 1, 4, []int{4, 3, 3}},
	} {
		if got := Split(c.total, c.weights, c.least, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d by %v, %d to %d each: %v, want %v", c.total, c.weights, c.least, c.most, got, c.want)
		}
	}
}

// Over an epoch each worker's rows are the sum of its batches, all rows are dealt, and a last batch has a row, and at
// most one more than the others.
func TestRowsOfAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batches := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(t, "batches")
		batch := 0
		for _, b := range batches {
			batch += b
		}
		rows := rapid.IntRange(len(batches), 2000).Draw(t, "rows")
		iterations := EpochIterations(rows, batch, len(batches))
		sum := 0
		p := Plan{Batches: batches, Iterations: iterations, Epoch: true}
		for i, n := range p.Rows(rows) {
			sum += n
			if last := n - int(iterations-1)*batches[i]; last < 1 || last > batches[i]+1 || last > batches[i] && rows%batch >= len(batches) {
				t.Fatalf("%d rows in batches of %v: worker %d has %d, the last batch is %d", rows, batches, i, n, last)
			}
		}
		if sum != rows {
			t.Fatalf("%d rows in batches of %v: dealt %d", rows, batches, sum)
		}
	})
}

// Ten thousand workers are dealt an epoch, and each asks for its last batch, in a time that grows with their number:
// less work than to compare each with each.
func TestDealingGrowsWithTheWorkers(t *testing.T) {
	const workers = 10_000
	e := Env{Workers: workers, Batch: 40 * workers, Max: 400, Rows: 200*workers - 3}
	c, err := NewCoordinator(Spec{Policy: "dbs"}, e, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, sum := c.Current(), 0
	if allocs := testing.AllocsPerRun(1, func() {
		for w := range workers {
			sum += a.Samples(w, a.Until-1, e.Rows)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations to ask for %d last batches", allocs, workers)
	}
	if want := 2 * (e.Rows - 4*e.Batch); sum != want { // AllocsPerRun runs it twice
		t.Errorf("the last batches add up to %d, want %d", sum/2, want/2)
	}
}
