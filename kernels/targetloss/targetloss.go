// Package targetloss holds the kernels mse_loss and huber_loss.
package targetloss

import "math"

// squared takes a prediction and a target for each row. It writes the square of their difference to loss, and its size to off. Unless g is
// empty, it writes the gradient of the sum of losses to g, twice the difference. g may be z.
func squared(z, targets, g, loss, off []float32, rows int) {
	for i := range rows {
		d := float64(z[i]) - float64(targets[i])
		loss[i], off[i] = float32(d*d), float32(math.Abs(d))
		if len(g) > 0 {
			g[i] = float32(2 * d)
		}
	}
}

// huber does the same for half the square of differences up to delta, and beyond it for the line that goes on from there.
func huber(z, targets, g, loss, off []float32, rows int, delta float64) {
	for i := range rows {
		d := float64(z[i]) - float64(targets[i])
		a := math.Abs(d)
		off[i] = float32(a)
		if a <= delta {
			loss[i] = float32(d * d / 2)
		} else {
			loss[i] = float32(delta * (a - delta/2))
		}
		if len(g) > 0 {
			g[i] = float32(max(-delta, min(delta, d))) // NaN stays NaN
		}
	}
}
