//go:build !purego

package optim

import "golang.org/x/sys/cpu"

// hasAVX2: the processor has AVX2, and the operating system keeps its registers. The tag purego turns it off.
var hasAVX2 = cpu.X86.HasAVX2

// The passes of AVX2 take lengths that are multiples of 8; the passes in Go do the rest. Both do the same roundings in the same
// order, without fused multiply-add. With stream, dst is written around the caches if it begins at a multiple of 32 bytes; dst must
// not be an operand then.

//go:noescape
func scaleAVX2(dst, src []float32, weight float32)

//go:noescape
func sumAVX2(dst, a, b []float32, weight float32, stream bool)

//go:noescape
func blendAVX2(dst, a, b []float32, scale, weight float32)

//go:noescape
func sgdAVX2(dst, src, grad []float32, lr, k, wd float32, stream bool)

//go:noescape
func momentumAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool)

//go:noescape
func nesterovAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool)

//go:noescape
func adamAVX2(dst, src, grad, m, v []float32, c *adamScalars)

//go:noescape
func normsAVX2(push, params []float32, l *lanes)

// whole is the number of n elements that AVX2 processes.
func whole(n int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ 7
}

func scalePass(dst, src []float32, weight float32) {
	k := whole(len(dst))
	if k > 0 {
		scaleAVX2(dst[:k], src[:k], weight)
	}
	scaleGo(dst[k:], src[k:], weight)
}

func sumPass(dst, a, b []float32, weight float32, stream bool) {
	k := whole(len(dst))
	if k > 0 {
		sumAVX2(dst[:k], a[:k], b[:k], weight, stream)
	}
	sumGo(dst[k:], a[k:], b[k:], weight)
}

func blendPass(dst, a, b []float32, scale, weight float32) {
	k := whole(len(dst))
	if k > 0 {
		blendAVX2(dst[:k], a[:k], b[:k], scale, weight)
	}
	blendGo(dst[k:], a[k:], b[k:], scale, weight)
}

func sgdPass(dst, src, grad []float32, lr, k, wd float32, stream bool) {
	n := whole(len(dst))
	if n > 0 {
		sgdAVX2(dst[:n], src[:n], grad[:n], lr, k, wd, stream)
	}
	sgdGo(dst[n:], src[n:], grad[n:], lr, k, wd)
}

func momentumPass(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) {
	n := whole(len(dst))
	if n > 0 {
		momentumAVX2(dst[:n], src[:n], grad[:n], m[:n], lr, k, wd, mu, stream)
	}
	momentumGo(dst[n:], src[n:], grad[n:], m[n:], lr, k, wd, mu)
}

func nesterovPass(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) {
	n := whole(len(dst))
	if n > 0 {
		nesterovAVX2(dst[:n], src[:n], grad[:n], m[:n], lr, k, wd, mu, stream)
	}
	nesterovGo(dst[n:], src[n:], grad[n:], m[n:], lr, k, wd, mu)
}

func adamPass(dst, src, grad, m, v []float32, c *adamScalars) {
	n := whole(len(dst))
	if n > 0 {
		adamAVX2(dst[:n], src[:n], grad[:n], m[:n], v[:n], c)
	}
	adamGo(dst[n:], src[n:], grad[n:], m[n:], v[n:], c)
}

func normsPass(push, params []float32, l *lanes) {
	k := whole(len(push))
	if k > 0 {
		normsAVX2(push[:k], params[:k], l)
	}
	normsGo(push[k:], params[k:], l)
}
