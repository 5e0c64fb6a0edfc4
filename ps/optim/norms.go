package optim

import (
	"fmt"
	"math"
)

// Norms is one pass over a push and the parameters that it is for, which have the same length n, else it panics: the
// 2-norm and the largest magnitude of scale*push, and the 2-norm of params. Sums are taken in float64, so that they
// neither overflow nor lose small terms, and rounded once. Where push has a NaN its norms are NaN. Equal inputs give
// equal bits on all machines.
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

// Norms are those of a push to this shard whose mean is weight * push: of the mean, or where it holds values that take the
// place of the parameters, of the change that they would bring.
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

// lanes are what the norms are made of: element i counts in lane i mod 8. Eight chains of additions, because one would
// wait for its own latency, and always eight, because the order of additions makes the bits.
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

// magnitude is |x| as bits, which as integers have the order of the numbers: the comparison is a single instruction, and
// a NaN is larger than all.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
