package optim

import "fmt"

// blend is dst = scale*a + weight*b over vectors of equal length; other lengths panic. With scale 0 it does not read a, which may
// then hold anything, even NaN. dst may be a or b, but must not overlap them otherwise. Equal inputs give equal bits, wherever the
// vectors are cut.
func blend(dst, a, b []float32, scale, weight float32) {
	if len(dst) != len(b) || len(dst) != len(a) {
		panic(fmt.Sprintf("optim: %d elements blended into %d", len(b), len(dst)))
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
