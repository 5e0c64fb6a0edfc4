package optim

import (
	"fmt"
	"math"
)

// Norms computes, in one pass over a push and its parameters, the 2-norm and the largest magnitude of scale*push, and the 2-norm
// of params. Different lengths panic. Sums are in float64, so that they neither overflow nor lose small terms, and are rounded
// once. If push has a NaN, its norms are NaN. Equal inputs give equal bits on all machines.
func Norms(push, params []float32, scale float64) (norm2, normInf, normW float32) {
	if len(push) != len(params) {
		panic(fmt.Sprintf("optim: norms of a push of %d elements for %d parameters", len(push), len(params)))
	}
	var l lanes
	normsPass(push, params, &l)
	scale = math.Abs(scale)
	var top uint32
	for _, t := range l.top {
		top = max(top, t)
	}
	norm2 = float32(scale * math.Sqrt(total(&l.push)))
	normInf = float32(scale * float64(math.Float32frombits(top)))
	return norm2, normInf, float32(math.Sqrt(total(&l.params)))
}

// Norms are the norms of a push to this shard whose mean is weight * push. If a push holds values that replace the parameters, the
// first two are norms of the change that they would make, otherwise of the mean.
func (s *Store) Norms(push, params []float32, weight float64) (norm2, normInf, normW float32) {
	if s.way != Average {
		return Norms(push, params, weight)
	}
	var change2, top, params2 float64
	for i, x := range push {
		was := float64(params[i])
		change := float64(weight*float64(x)) - was
		change2 += float64(change * change)
		params2 += float64(was * was)
		top = math.Max(top, math.Abs(change))
	}
	return float32(math.Sqrt(change2)), float32(top), float32(math.Sqrt(params2))
}

// lanes are the partial results of the norms: element i counts in lane i mod 8. There are eight chains of additions, because one
// would wait for its own latency. There are always eight, because the order of additions determines the bits.
type lanes struct {
	push, params [8]float64 // sums of squares
	top          [8]uint32  // largest magnitudes of push, as bits
}

func total(s *[8]float64) float64 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// normsGo adds elements to the lanes, the first to lane 0.
func normsGo(push, params []float32, l *lanes) {
	params = params[:len(push)]
	for i, x := range push {
		k := i & 7
		l.push[k] += float64(float64(x) * float64(x))
		l.params[k] += float64(float64(params[i]) * float64(params[i]))
		l.top[k] = max(l.top[k], magnitude(x))
	}
}

// magnitude is |x| as bits. As integers these have the order of the numbers, so a comparison is a single instruction, and a NaN is
// larger than all numbers.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
