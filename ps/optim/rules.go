package optim

// The loops below shorten their slices by four elements a turn: the loop condition then bounds every
// constant index, and the compiler drops all bounds checks (go build -gcflags=-d=ssa/check_bce shows none
// inside them).

type sgd struct{}

func (sgd) State() int { return 0 }

func (sgd) Step(dst, src, grad []float32, state [][]float32, a Args) {
	mustFit(dst, src, grad, state, 0)
	lr, k, wd := a.LR, a.GradScale, a.Decay
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

type momentum struct{ mu float32 }

func (momentum) State() int { return 1 }

func (r momentum) Step(dst, src, grad []float32, state [][]float32, a Args) {
	mustFit(dst, src, grad, state, 1)
	lr, k, wd, mu, m := a.LR, a.GradScale, a.Decay, r.mu, state[0]
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

type nesterov struct{ mu float32 }

func (nesterov) State() int { return 1 }

func (r nesterov) Step(dst, src, grad []float32, state [][]float32, a Args) {
	mustFit(dst, src, grad, state, 1)
	lr, k, wd, mu, m := a.LR, a.GradScale, a.Decay, r.mu, state[0]
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

// The three scalar steps are small enough to be inlined. Each product is rounded to float32 before it is
// added; see the package comment for why.

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
