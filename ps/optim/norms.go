package optim

import (
	"fmt"
	"math"
)

// Norms is one pass over a push and the parameters that it is for, which have the same length n, else it panics: the
// 2-norm and the largest magnitude of scale*push, and the 2-norm of params. Sums are taken in float64, so that they
// neither overflow nor lose small terms, and rounded once. Where push has a NaN its norms are NaN.
func Norms(push, params []float32, scale float64) (norm2, normInf, normW float32) {
	if len(push) != len(params) {
		panic(fmt.Sprintf("optim: norms of a push of %d elements for %d parameters", len(push), len(params)))
	}
	// Sums and maxima in pairs: one chain of additions would wait for its own latency.
	var g0, g1, w0, w1 float64
	var top0, top1 uint32
	for len(push) >= 2 && len(params) >= 2 {
		x0, x1, y0, y1 := float64(push[0]), float64(push[1]), float64(params[0]), float64(params[1])
		g0 += float64(x0 * x0)
		g1 += float64(x1 * x1)
		w0 += float64(y0 * y0)
		w1 += float64(y1 * y1)
		top0 = max(top0, magnitude(push[0]))
		top1 = max(top1, magnitude(push[1]))
		push, params = push[2:], params[2:]
	}
	if len(push) == 1 && len(params) == 1 {
		x, y := float64(push[0]), float64(params[0])
		g0 += float64(x * x)
		w0 += float64(y * y)
		top0 = max(top0, magnitude(push[0]))
	}
	scale = math.Abs(scale)
	norm2 = float32(scale * math.Sqrt(g0+g1))
	normInf = float32(scale * float64(math.Float32frombits(max(top0, top1))))
	return norm2, normInf, float32(math.Sqrt(w0 + w1))
}

// magnitude is |x| as bits, which as integers have the order of the numbers: the comparison is a single instruction, and
// a NaN is larger than all.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
