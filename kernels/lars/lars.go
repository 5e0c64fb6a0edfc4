// Package lars holds the kernels lars_rate and lars: momentum with a rate for each layer.
package lars

import (
	"math"

	"fluentps/kernels/sgd"
)

// rateMax keeps the scale of a gradient that has vanished finite as a float32: 0 times that is 0.
const rateMax = 1e30

// ownRate is the layer's own rate, trust*|w| / (|k*grad| + |decay*w|) of 2-norms over n elements; trust where all
// parameters are 0, which would stay so. Sums are taken in float64, so that they neither overflow nor lose small terms.
func ownRate(w, grad []float32, n int, k, decay, trust float32) float32 {
	var ww, gg float64
	grad = grad[:n]
	for i, x := range w[:n] {
		g := float64(grad[i])
		ww += float64(x) * float64(x)
		gg += g * g
	}
	if ww == 0 {
		return trust
	}
	norm := math.Sqrt(ww)
	return float32(min(float64(trust)*norm/(math.Abs(float64(k))*math.Sqrt(gg)+math.Abs(float64(decay))*norm), rateMax))
}

// update is momentum's with the gradient times rate.
func update(next, w, grad, m []float32, rate float32, n int, s sgd.Scalars) {
	s.K *= rate
	s.Decay *= rate
	sgd.MomentumStep(next, w, grad, m, n, s)
}
