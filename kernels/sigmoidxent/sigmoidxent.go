// Package sigmoidxent holds the kernel sigmoid_xent.
package sigmoidxent

import "math"

// losses takes one logit per row and labels 0 or 1. It writes each row's cross-entropy in nats to loss,
// and to hit 1 if the prediction is the label, else 0. A logit above 0 predicts label 1. Unless g is
// empty, it writes the gradient of the sum of losses to g, sigmoid(z) - label. g may be z.
func losses(z, labels, g, loss, hit []float32, rows int) {
	for i := range rows {
		v, y := float64(z[i]), float64(labels[i])
		e := math.Exp(-math.Abs(v)) // at most 1, whatever the logit
		loss[i] = float32(max(v, 0) - v*y + math.Log1p(e))
		hit[i] = 0
		if (v > 0) == (y > 0.5) && !math.IsNaN(v) {
			hit[i] = 1
		}
		if len(g) == 0 {
			continue
		}
		p := 1 / (1 + e)
		if v < 0 {
			p = e / (1 + e)
		}
		g[i] = float32(p - y)
	}
}
