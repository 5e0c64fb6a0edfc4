package optim

type sgd struct{}

func (sgd) State() int { return 0 }

func (sgd) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 0)
	return sgdPass(dst, src, grad, a.LR, a.GradScale, a.Decay, a.Stream)
}

type momentum struct{ mu float32 }

func (momentum) State() int { return 1 }

func (r momentum) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 1)
	return momentumPass(dst, src, grad, state[0], a.LR, a.GradScale, a.Decay, r.mu, a.Stream)
}

type nesterov struct{ mu float32 }

func (nesterov) State() int { return 1 }

func (r nesterov) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 1)
	return nesterovPass(dst, src, grad, state[0], a.LR, a.GradScale, a.Decay, r.mu, a.Stream)
}
