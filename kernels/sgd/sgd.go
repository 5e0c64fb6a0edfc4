// Package sgd holds the kernels sgd, momentum and nesterov: the update rules of these names
// in package optim, to the bit.
package sgd

// scalars are the constants of a step. The gradient is K*grad + Decay*w: grad holds a sum over samples.
type scalars struct{ LR, K, Decay, Momentum float32 }

// step writes w - lr*g to next, for n elements. next may be w.
func step(next, w, grad []float32, n int, s scalars) {
	next, grad = next[:n], grad[:n]
	for i, v := range w[:n] {
		next[i] = v - float32(s.LR*s.gradient(v, grad[i]))
	}
}

// momentumStep sets m to mu*m + g and writes w - lr*m to next.
func momentumStep(next, w, grad, m []float32, n int, s scalars) {
	next, grad, m = next[:n], grad[:n], m[:n]
	for i, v := range w[:n] {
		state := float32(s.Momentum*m[i]) + s.gradient(v, grad[i])
		next[i], m[i] = v-float32(s.LR*state), state
	}
}

// nesterovStep sets m to mu*m + g and writes w - lr*(g + mu*m) to next.
func nesterovStep(next, w, grad, m []float32, n int, s scalars) {
	next, grad, m = next[:n], grad[:n], m[:n]
	for i, v := range w[:n] {
		g := s.gradient(v, grad[i])
		state := float32(s.Momentum*m[i]) + g
		next[i], m[i] = v-float32(s.LR*(g+float32(s.Momentum*state))), state
	}
}

// gradient rounds each product before it is added, as package optim does.
func (s *scalars) gradient(w, grad float32) float32 {
	return float32(s.K*grad) + float32(s.Decay*w)
}
