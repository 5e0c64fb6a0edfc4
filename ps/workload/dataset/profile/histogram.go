package profile

import (
	"math"
	"slices"
)

// Histogram has the shares of rows, in %, whose values are in each of some bins of the same width. Bin i is from From+i*Width to
// From+(i+1)*Width.
type Histogram struct {
	From, Width float64
	Whole       bool // values are whole numbers, and each bin has one of them in its middle
	Train, Test []float64
	// Least and Most are the smallest and the largest finite value of training. Outside is the share of training values, in %, that are
	// beyond the bins: a few are far from all others.
	Least, Most, Outside float64
	NotFinite            int // training values that are NaN or infinite, which no bin has
}

const (
	binsMost  = 30
	wholeMost = 40   // so many different whole numbers have a bin each
	farShare  = 0.01 // half of it at each end may be far
	farTimes  = 8    // from all others: so many times as far as those are wide
)

// histogram makes the histogram of the values of training, and of the test over the same bins. nil: there is no test.
func histogram(train, test []float64) (h Histogram) {
	values := finite(train)
	h.NotFinite = len(train) - len(values)
	if len(values) == 0 {
		return h
	}
	slices.Sort(values)
	lo, hi := values[0], values[len(values)-1]
	h.Least, h.Most = lo, hi
	if k := int(farShare / 2 * float64(len(values))); k > 0 {
		if a, b := values[k], values[len(values)-1-k]; b > a && hi-lo > farTimes*(b-a) {
			lo, hi = a, b
		}
	}
	bins := 0
	whole := !slices.ContainsFunc(values, func(v float64) bool { return v != math.Trunc(v) || math.Abs(v) > 1<<50 })
	switch {
	case whole && hi-lo < wholeMost:
		h.From, h.Width, h.Whole, bins = lo-0.5, 1, true, int(hi-lo)+1
	case whole:
		h.Width = math.Ceil((hi - lo + 1) / binsMost)
		h.From, bins = lo-0.5, int(math.Ceil((hi-lo+1)/h.Width))
	case hi == lo:
		h.From, h.Width, bins = lo-0.5, 1, 1
	default:
		h.From, h.Width, bins = lo, (hi-lo)/binsMost, binsMost
	}
	h.Train = h.count(train, bins)
	for _, v := range values {
		if v < lo || v > hi {
			h.Outside += 100 / float64(len(train))
		}
	}
	if len(test) > 0 {
		h.Test = h.count(test, bins)
	}
	return h
}

func finite(values []float64) (kept []float64) {
	for _, v := range values {
		if isFinite(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// count is the share of values in each bin, in %. The upper end of the last bin belongs to it.
func (h *Histogram) count(values []float64, bins int) []float64 {
	shares := make([]float64, bins)
	for _, v := range values {
		k := math.Floor((v - h.From) / h.Width)
		if k == float64(bins) && v <= h.From+(float64(bins)+1e-9)*h.Width && !h.Whole {
			k--
		}
		if k >= 0 && k < float64(bins) {
			shares[int(k)]++
		}
	}
	for k := range shares {
		shares[k] *= 100 / float64(len(values))
	}
	return shares
}
