package optim

// adamw is Algorithm 2 of Loshchilov and Hutter (ICLR 2019) in the form of PyTorch's torch.optim.AdamW: the decay is no part of the
// gradient. Parameters first lose their share lr*weight_decay, and then take the step of adam. Its state is that of adam.
type adamw struct{ adam }

func (r adamw) Step(dst, src, grad []float32, state [][]float32, a Args) (top uint32) {
	mustFit(dst, src, grad, state, 2)
	lost := r.lost(&a)
	if lost == 0 {
		return r.adam.Step(dst, src, grad, state, a)
	}
	for lo := 0; lo < len(dst); lo += deltaBlock { // the second pass finds in the cache what the first has written
		hi := min(lo+deltaBlock, len(dst))
		d, g := dst[lo:hi], grad[lo:hi]
		sgdPass(d, src[lo:hi], g, lost, 0, 1, false) // kernels/sgd has the same bits
		top = max(top, r.adam.Step(d, d, g, [][]float32{state[0][lo:hi], state[1][lo:hi]}, a))
	}
	return top
}

// lost is the share of the parameters that decay takes: w - lost*w is rounded at random, where (1-lost)*w would be rounded to one side in
// every step. It takes the decay out of a: the gradient has none.
func (adamw) lost(a *Args) float32 {
	lost := float32(float64(a.LR) * float64(a.Decay))
	a.Decay = 0
	return lost
}
