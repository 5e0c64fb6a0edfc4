//go:build !purego

package optim

import "golang.org/x/sys/cpu"

// hasAVX2: the processor has AVX2, and the operating system keeps its registers. The tag purego turns it off.
var hasAVX2 = cpu.X86.HasAVX2

// The passes of AVX2 take lengths that are multiples of 8; the passes in Go do the rest. Both do the same roundings in the same
// order, without fused multiply-add. With stream, dst is written around the caches if it begins at a multiple of 32 bytes; dst must
// not be an operand then.

//go:noescape
func scaleAVX2(dst, src []float32, weight float32) uint32

//go:noescape
func sumAVX2(dst, a, b []float32, weight float32, stream bool) uint32

//go:noescape
func blendAVX2(dst, a, b []float32, scale, weight float32) uint32

//go:noescape
func sgdAVX2(dst, src, grad []float32, lr, k, wd float32, stream bool) uint32

//go:noescape
func momentumAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) uint32

//go:noescape
func nesterovAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) uint32

//go:noescape
func adamAVX2(dst, src, grad, m, v []float32, c *adamScalars) uint32

//go:noescape
func topAVX2(x []float32) uint32

//go:noescape
func normsAVX2(push, params []float32, l *lanes)

// whole is the number of n elements that AVX2 processes.
func whole(n int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ 7
}

func scalePass(dst, src []float32, weight float32) (top uint32) {
	k := whole(len(dst))
	if k > 0 {
		top = scaleAVX2(dst[:k], src[:k], weight)
	}
	scaleGo(dst[k:], src[k:], weight)
	return max(top, topGo(dst[k:]))
}

func sumPass(dst, a, b []float32, weight float32, stream bool) (top uint32) {
	k := whole(len(dst))
	if k > 0 {
		top = sumAVX2(dst[:k], a[:k], b[:k], weight, stream)
	}
	sumGo(dst[k:], a[k:], b[k:], weight)
	return max(top, topGo(dst[k:]))
}

func blendPass(dst, a, b []float32, scale, weight float32) (top uint32) {
	k := whole(len(dst))
	if k > 0 {
		top = blendAVX2(dst[:k], a[:k], b[:k], scale, weight)
	}
	blendGo(dst[k:], a[k:], b[k:], scale, weight)
	return max(top, topGo(dst[k:]))
}

func sgdPass(dst, src, grad []float32, lr, k, wd float32, stream bool) (top uint32) {
	n := whole(len(dst))
	if n > 0 {
		top = sgdAVX2(dst[:n], src[:n], grad[:n], lr, k, wd, stream)
	}
	sgdGo(dst[n:], src[n:], grad[n:], lr, k, wd)
	return max(top, topGo(dst[n:]))
}

func momentumPass(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) (top uint32) {
	n := whole(len(dst))
	if n > 0 {
		top = momentumAVX2(dst[:n], src[:n], grad[:n], m[:n], lr, k, wd, mu, stream)
	}
	momentumGo(dst[n:], src[n:], grad[n:], m[n:], lr, k, wd, mu)
	return max(top, topGo(dst[n:]))
}

func nesterovPass(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) (top uint32) {
	n := whole(len(dst))
	if n > 0 {
		top = nesterovAVX2(dst[:n], src[:n], grad[:n], m[:n], lr, k, wd, mu, stream)
	}
	nesterovGo(dst[n:], src[n:], grad[n:], m[n:], lr, k, wd, mu)
	return max(top, topGo(dst[n:]))
}

func adamPass(dst, src, grad, m, v []float32, c *adamScalars) (top uint32) {
	n := whole(len(dst))
	if n > 0 {
		top = adamAVX2(dst[:n], src[:n], grad[:n], m[:n], v[:n], c)
	}
	adamGo(dst[n:], src[n:], grad[n:], m[n:], v[n:], c)
	return max(top, topGo(dst[n:]))
}

func topPass(x []float32) (top uint32) {
	k := whole(len(x))
	if k > 0 {
		top = topAVX2(x[:k])
	}
	return max(top, topGo(x[k:]))
}

func normsPass(push, params []float32, l *lanes) {
	k := whole(len(push))
	if k > 0 {
		normsAVX2(push[:k], params[:k], l)
	}
	normsGo(push[k:], params[k:], l)
}
