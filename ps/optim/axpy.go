package optim

import "fmt"

// Axpy is dst = scale*dst + weight*src over vectors of equal length n, else it panics. Scale 0 overwrites:
// dst is then never read, so that a recycled buffer may hold anything, NaN too. dst and src may be the same
// vector but must not overlap otherwise. Equal inputs give equal bits, wherever the vectors are cut.
func Axpy(dst, src []float32, scale, weight float32) { blend(dst, dst, src, scale, weight) }

// blend is dst = scale*a + weight*b. Scale 0 reads nothing of a. dst may be a or b.
func blend(dst, a, b []float32, scale, weight float32) {
	if len(dst) != len(b) || len(dst) != len(a) {
		panic(fmt.Sprintf("optim: axpy of %d elements onto %d", len(b), len(dst)))
	}
	switch {
	case scale == 0 && weight == 1:
		copy(dst, b)
	case scale == 0:
		scalePass(dst, b, weight)
	case scale == 1:
		sumPass(dst, a, b, weight, false)
	default:
		blendPass(dst, a, b, scale, weight)
	}
}
