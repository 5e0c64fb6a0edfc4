// Package softmaxxent is the Go twin of the kernel softmax_xent.
package softmaxxent

import "math"

// Rows takes logits z (rows x cols) and labels (class numbers). It writes each row's cross-entropy
// in nats to loss, 1 or 0 to hit (is the first of the largest logits the label?), and the gradient
// of the sum of losses, softmax(z) - onehot(label), to g unless g is empty. g may be z.
func Rows(z, labels, g, loss, hit []float32, rows, cols int) {
	for i := range rows {
		row := z[i*cols : (i+1)*cols]
		label := int(labels[i])
		best := 0
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		top := float64(row[best])
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		loss[i] = float32(math.Log(sum) + top - float64(row[label]))
		hit[i] = 0
		if best == label && !math.IsNaN(float64(loss[i])) {
			hit[i] = 1
		}
		if len(g) > 0 {
			gradient(g[i*cols:(i+1)*cols], row, label, top, 1/sum)
		}
	}
}

// gradient reads row[j] before it writes g[j], because both may be the same memory.
func gradient(g, row []float32, label int, top, scale float64) {
	for j, v := range row {
		p := math.Exp(float64(v)-top) * scale
		if j == label {
			p--
		}
		g[j] = float32(p)
	}
}
