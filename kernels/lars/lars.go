// Package lars holds the kernels lars_rate and lars: momentum with a learning rate for each layer.
package lars

import (
	"math"

	"fluentps/kernels/sgd"
)

// rateMax keeps the rate finite as a float32 when a gradient is 0. The product of both is then 0, not NaN.
const rateMax = 1e30

// layerRate returns the rate of a layer, trust*|w| / (|k*grad| + |decay*w|), with 2-norms over n elements. If all
// parameters are 0, it returns trust, because they would stay 0 otherwise. Sums are in float64, so that they neither
// overflow nor lose small terms.
func layerRate(w, grad []float32, n int, k, decay, trust float32) float32 {
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

// update is the momentum step with rate times the gradient.
func update(next, w, grad, m []float32, rate float32, n int, s sgd.Scalars) {
	s.K *= rate
	s.Decay *= rate
	sgd.MomentumStep(next, w, grad, m, n, s)
}
