package optim

import "fmt"

// Axpy is dst = scale*dst + weight*src over vectors of equal length n, else it panics. Scale 0 overwrites:
// dst is then never read, so that a recycled buffer may hold anything, NaN too. dst and src may be the same
// vector but must not overlap otherwise. Equal inputs give equal bits, wherever the vectors are cut.
func Axpy(dst, src []float32, scale, weight float32) {
	if len(dst) != len(src) {
		panic(fmt.Sprintf("optim: axpy of %d elements onto %d", len(src), len(dst)))
	}
	switch {
	case scale == 0 && weight == 1:
		copy(dst, src)
	case scale == 0:
		scaled(dst, src, weight)
	case scale == 1:
		add(dst, src, weight)
	default:
		blend(dst, src, scale, weight)
	}
}

func scaled(dst, src []float32, weight float32) {
	for len(dst) >= 4 && len(src) >= 4 {
		dst[0] = weight * src[0]
		dst[1] = weight * src[1]
		dst[2] = weight * src[2]
		dst[3] = weight * src[3]
		dst, src = dst[4:], src[4:]
	}
	for i := 0; i < len(dst) && i < len(src); i++ {
		dst[i] = weight * src[i]
	}
}

func add(dst, src []float32, weight float32) {
	for len(dst) >= 4 && len(src) >= 4 {
		dst[0] += float32(weight * src[0])
		dst[1] += float32(weight * src[1])
		dst[2] += float32(weight * src[2])
		dst[3] += float32(weight * src[3])
		dst, src = dst[4:], src[4:]
	}
	for i := 0; i < len(dst) && i < len(src); i++ {
		dst[i] += float32(weight * src[i])
	}
}

func blend(dst, src []float32, scale, weight float32) {
	for len(dst) >= 4 && len(src) >= 4 {
		dst[0] = float32(scale*dst[0]) + float32(weight*src[0])
		dst[1] = float32(scale*dst[1]) + float32(weight*src[1])
		dst[2] = float32(scale*dst[2]) + float32(weight*src[2])
		dst[3] = float32(scale*dst[3]) + float32(weight*src[3])
		dst, src = dst[4:], src[4:]
	}
	for i := 0; i < len(dst) && i < len(src); i++ {
		dst[i] = float32(scale*dst[i]) + float32(weight*src[i])
	}
}
