// Package biasrelu holds the kernels bias_relu and relu_grad.
package biasrelu

// forward sets x (rows x cols) to max(x + bias, 0); bias (cols) is added to every row.
// NaN stays NaN, so that a diverging run shows.
func forward(x, bias []float32, rows, cols int) {
	bias = bias[:cols]
	for i := range rows {
		row := x[i*cols : (i+1)*cols]
		for j, b := range bias {
			v := row[j] + b
			if v < 0 {
				v = 0
			}
			row[j] = v
		}
	}
}

// backward sets the first n elements of dx to 0 wherever the output y was clipped to 0.
func backward(dx, y []float32, n int) {
	dx = dx[:n]
	for i, v := range y[:n] {
		if v <= 0 {
			dx[i] = 0
		}
	}
}
