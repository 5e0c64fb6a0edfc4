// Package adam holds the kernel adam: the update rule of this name in package optim, to the bit.
package adam

import "math"

// scalars are the constants of a step. The gradient is K*grad + Decay*w: grad holds a sum over samples.
type scalars struct {
	K, Decay float32
	Rate     float32 // lr / (1 - beta1^t)
	Root     float32 // 1 / sqrt(1 - beta2^t)
}

// Constants is the number of values that stay the same during a run: beta1, 1-beta1, beta2, 1-beta2, epsilon. The
// caller passes the differences, because it computes them from more digits than a float32 has.
const Constants = 5

// update sets m to beta1*m + (1-beta1)*g and v to beta2*v + (1-beta2)*g*g. With these it sets next to
// w - rate*m / (root*sqrt(v) + epsilon), for n elements. next may be w.
func update(next, w, grad, m, v, constants []float32, n int, s scalars) {
	next, grad, m, v = next[:n], grad[:n], m[:n], v[:n]
	c := (*[Constants]float32)(constants)
	b1, c1, b2, c2, epsilon := c[0], c[1], c[2], c[3], c[4]
	for i, x := range w[:n] {
		g := float32(s.K*grad[i]) + float32(s.Decay*x)
		m1 := float32(b1*m[i]) + float32(c1*g)
		v1 := float32(b2*v[i]) + float32(float32(c2*g)*g)
		next[i] = x - float32(s.Rate*m1)/(float32(s.Root*float32(math.Sqrt(float64(v1))))+epsilon)
		m[i], v[i] = m1, v1
	}
}
