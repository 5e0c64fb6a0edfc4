package optim

// The passes over vectors of equal length, in plain Go. A machine without our vector instructions runs them, and all other passes
// equal them to the bit. If two NaNs meet, the machine decides which one is the result.
//
// The loops shorten their slices by four elements a turn: the loop condition then bounds every constant index, and
// the compiler drops all bounds checks (go build -gcflags=-d=ssa/check_bce shows none inside them). Each product is
// rounded to float32 before it is added; see the package comment for why.

// topGo is the largest magnitude in x, as bits; 0 if x is empty. See magnitude.
func topGo(x []float32) (top uint32) {
	for len(x) >= 4 {
		top = max(top, magnitude(x[0]), magnitude(x[1]), magnitude(x[2]), magnitude(x[3]))
		x = x[4:]
	}
	for _, v := range x {
		top = max(top, magnitude(v))
	}
	return top
}

// scaleGo is dst = weight*src.
func scaleGo(dst, src []float32, weight float32) {
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

// sumGo is dst = a + weight*b.
func sumGo(dst, a, b []float32, weight float32) {
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] + float32(weight*b[0])
		dst[1] = a[1] + float32(weight*b[1])
		dst[2] = a[2] + float32(weight*b[2])
		dst[3] = a[3] + float32(weight*b[3])
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := 0; i < len(dst) && i < len(a) && i < len(b); i++ {
		dst[i] = a[i] + float32(weight*b[i])
	}
}

// blendGo is dst = scale*a + weight*b.
func blendGo(dst, a, b []float32, scale, weight float32) {
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = float32(scale*a[0]) + float32(weight*b[0])
		dst[1] = float32(scale*a[1]) + float32(weight*b[1])
		dst[2] = float32(scale*a[2]) + float32(weight*b[2])
		dst[3] = float32(scale*a[3]) + float32(weight*b[3])
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := 0; i < len(dst) && i < len(a) && i < len(b); i++ {
		dst[i] = float32(scale*a[i]) + float32(weight*b[i])
	}
}

// sgdGo, momentumGo and nesterovGo are the rules of New, with k*grad + wd*src for g.

func sgdGo(dst, src, grad []float32, lr, k, wd float32) {
	for len(dst) >= 4 && len(src) >= 4 && len(grad) >= 4 {
		dst[0] = sgdStep(src[0], grad[0], lr, k, wd)
		dst[1] = sgdStep(src[1], grad[1], lr, k, wd)
		dst[2] = sgdStep(src[2], grad[2], lr, k, wd)
		dst[3] = sgdStep(src[3], grad[3], lr, k, wd)
		dst, src, grad = dst[4:], src[4:], grad[4:]
	}
	for i := 0; i < len(dst) && i < len(src) && i < len(grad); i++ {
		dst[i] = sgdStep(src[i], grad[i], lr, k, wd)
	}
}

func momentumGo(dst, src, grad, m []float32, lr, k, wd, mu float32) {
	for len(dst) >= 4 && len(src) >= 4 && len(grad) >= 4 && len(m) >= 4 {
		dst[0], m[0] = momentumStep(src[0], grad[0], m[0], lr, k, wd, mu)
		dst[1], m[1] = momentumStep(src[1], grad[1], m[1], lr, k, wd, mu)
		dst[2], m[2] = momentumStep(src[2], grad[2], m[2], lr, k, wd, mu)
		dst[3], m[3] = momentumStep(src[3], grad[3], m[3], lr, k, wd, mu)
		dst, src, grad, m = dst[4:], src[4:], grad[4:], m[4:]
	}
	for i := 0; i < len(dst) && i < len(src) && i < len(grad) && i < len(m); i++ {
		dst[i], m[i] = momentumStep(src[i], grad[i], m[i], lr, k, wd, mu)
	}
}

func nesterovGo(dst, src, grad, m []float32, lr, k, wd, mu float32) {
	for len(dst) >= 4 && len(src) >= 4 && len(grad) >= 4 && len(m) >= 4 {
		dst[0], m[0] = nesterovStep(src[0], grad[0], m[0], lr, k, wd, mu)
		dst[1], m[1] = nesterovStep(src[1], grad[1], m[1], lr, k, wd, mu)
		dst[2], m[2] = nesterovStep(src[2], grad[2], m[2], lr, k, wd, mu)
		dst[3], m[3] = nesterovStep(src[3], grad[3], m[3], lr, k, wd, mu)
		dst, src, grad, m = dst[4:], src[4:], grad[4:], m[4:]
	}
	for i := 0; i < len(dst) && i < len(src) && i < len(grad) && i < len(m); i++ {
		dst[i], m[i] = nesterovStep(src[i], grad[i], m[i], lr, k, wd, mu)
	}
}

// The three scalar steps are small enough to be inlined.

func sgdStep(w, sum, lr, k, wd float32) float32 {
	g := float32(k*sum) + float32(wd*w)
	return w - float32(lr*g)
}

func momentumStep(w, sum, m, lr, k, wd, mu float32) (next, state float32) {
	g := float32(k*sum) + float32(wd*w)
	m = float32(mu*m) + g
	return w - float32(lr*m), m
}

func nesterovStep(w, sum, m, lr, k, wd, mu float32) (next, state float32) {
	g := float32(k*sum) + float32(wd*w)
	m = float32(mu*m) + g
	return w - float32(lr*(g+float32(mu*m))), m
}
