// Package channelbias holds the kernels channel_bias_relu and channel_bias_grad.
package channelbias

// forward sets x (images x channels x positions) to max(x + bias, 0); bias (channels) is added to
// every position of its channel. NaN stays NaN, so that a diverging run shows.
func forward(x, bias []float32, images, channels, positions int) {
	for i := range images * channels {
		b := bias[i%channels]
		plane := x[i*positions : (i+1)*positions]
		for j, v := range plane {
			v += b
			if v < 0 {
				v = 0
			}
			plane[j] = v
		}
	}
}

// gradient sets db (channels) to the sums of dy (images x channels x positions) over images and
// positions. It sums each plane on its own and adds the planes in the order of the images.
func gradient(db, dy []float32, images, channels, positions int) {
	db = db[:channels]
	clear(db)
	for i := range images {
		for c := range db {
			at := (i*channels + c) * positions
			db[c] += sum(dy[at : at+positions])
		}
	}
}

// sum adds four interleaved parts, whose additions do not depend on one another.
func sum(x []float32) float32 {
	var a, b, c, d float32
	for len(x) >= 4 {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
		x = x[4:]
	}
	for _, v := range x {
		a += v
	}
	return (a + b) + (c + d)
}
