package optim

import (
	"fmt"
	"math"
)

// adam is Algorithm 1 of Kingma and Ba (ICLR 2015). Its state is the first moment, then the second raw moment.
type adam struct{ beta1, beta2, epsilon float64 }

func (adam) State() int { return 2 }

func (r adam) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 2)
	if a.Step < 1 {
		panic(fmt.Sprintf("optim: adam takes step %d; its bias correction counts from 1", a.Step))
	}
	c := r.scalars(a)
	return adamPass(dst, src, grad, state[0], state[1], &c)
}

// adamScalars are the constants of one step. The bias corrections 1 - beta^t are in rate and root.
type adamScalars struct {
	k, wd   float32 // the gradient is k*grad + wd*src
	b1, c1  float32 // beta1 and 1 - beta1
	b2, c2  float32 // beta2 and 1 - beta2
	rate    float32 // lr / (1 - beta1^t)
	root    float32 // 1 / sqrt(1 - beta2^t)
	epsilon float32
}

func (r adam) scalars(a Args) adamScalars {
	t := float64(a.Step)
	return adamScalars{
		k: a.GradScale, wd: a.Decay,
		b1: float32(r.beta1), c1: float32(1 - r.beta1),
		b2: float32(r.beta2), c2: float32(1 - r.beta2),
		rate:    float32(float64(a.LR) / (1 - math.Pow(r.beta1, t))),
		root:    float32(1 / math.Sqrt(1-math.Pow(r.beta2, t))),
		epsilon: float32(r.epsilon),
	}
}

// adamGo is the pass in plain Go.
func adamGo(dst, src, grad, m, v []float32, c *adamScalars) {
	src, grad, m, v = src[:len(dst)], grad[:len(dst)], m[:len(dst)], v[:len(dst)]
	for i := range dst {
		g := float32(c.k*grad[i]) + float32(c.wd*src[i])
		m1 := float32(c.b1*m[i]) + float32(c.c1*g)
		v1 := float32(c.b2*v[i]) + float32(float32(c.c2*g)*g)
		dst[i] = src[i] - float32(c.rate*m1)/(float32(c.root*float32(math.Sqrt(float64(v1))))+c.epsilon)
		m[i], v[i] = m1, v1
	}
}

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
