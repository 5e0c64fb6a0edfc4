package optim

import "fmt"

// blend is dst = scale*a + weight*b over vectors of equal length; other lengths panic. With scale 0 it does not read a, which may
// then hold anything, even NaN. dst may be a or b, but must not overlap them otherwise. Equal inputs give equal bits, wherever the
// vectors are cut. It returns the largest magnitude that it wrote, as bits.
func blend(dst, a, b []float32, scale, weight float32) (top uint32) {
	if len(dst) != len(b) || len(dst) != len(a) {
		panic(fmt.Sprintf("optim: %d elements blended into %d", len(b), len(dst)))
	}
	switch {
	case scale == 0 && weight == 1:
		copy(dst, b)
		return topPass(dst)
	case scale == 0:
		return scalePass(dst, b, weight)
	case scale == 1:
		return sumPass(dst, a, b, weight, false)
	}
	return blendPass(dst, a, b, scale, weight)
}
