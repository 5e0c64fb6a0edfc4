// Package softmaxxent holds the kernel softmax_xent.
package softmaxxent

import "math"

// losses takes logits z (rows x cols) and labels (class numbers). It writes each row's cross-entropy
// in nats to loss, and to hit 1 if the label is the first of the largest logits, else 0. Unless g is
// empty, it writes the gradient of the sum of losses to g, softmax(z) - onehot(label). g may be z.
func losses(z, labels, g, loss, hit []float32, rows, cols int) {
	for i := range rows {
		row := z[i*cols : (i+1)*cols]
		label := int(labels[i])
		best := 0
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		top, labelled := float64(row[best]), float64(row[label])
		sum := exponentials(g, row, i*cols, top)
		loss[i] = float32(math.Log(sum) + top - labelled)
		hit[i] = 0
		if best == label && !math.IsNaN(float64(loss[i])) {
			hit[i] = 1
		}
		if len(g) > 0 {
			gradient(g[i*cols:(i+1)*cols], label, float32(1/sum))
		}
	}
}

// exponentials returns the sum of exp(row - top). Unless g is empty, it writes the terms to g from element at on.
// It reads row[j] before it writes g[at+j], because both may be the same memory.
func exponentials(g, row []float32, at int, top float64) (sum float64) {
	for j, v := range row {
		e := math.Exp(float64(v) - top)
		sum += e
		if len(g) > 0 {
			g[at+j] = float32(e)
		}
	}
	return sum
}

// gradient turns the exponentials in g into the gradient of a row. scale is 1 / the sum of the exponentials.
func gradient(g []float32, label int, scale float32) {
	for j, e := range g {
		g[j] = e * scale
	}
	g[label]--
}
