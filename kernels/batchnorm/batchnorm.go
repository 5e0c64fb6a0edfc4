// Package batchnorm holds the kernels batch_norm, batch_norm_eval, batch_norm_grad and batch_norm_running.
//
// Batch normalization is that of Ioffe and Szegedy (ICML 2015, Algorithms 1 and 2) for images in NCHW order: a channel's
// statistics are over all images and positions of a batch.
package batchnorm

import "math"

// shape is images x channels x positions. ReLU says whether the output is clipped at 0.
type shape struct {
	Images, Channels, Positions int
	ReLU                        bool
}

// plane returns channel c of image i.
func (s shape) plane(x []float32, i, c int) []float32 {
	at := (i*s.Channels + c) * s.Positions
	return x[at : at+s.Positions : at+s.Positions]
}

// forward sets y to scale*(x-mean)*inverse + shift + r, with ReLU at least 0. mean and inverse are those of each channel
// of x. inverse is 1/sqrt(variance + epsilon), and the variance is divided by the number of values. saved (2 x channels)
// becomes the means, then the inverses. r has y's shape or no elements. NaN stays NaN.
func forward(y, saved, x, scale, shift, r []float32, s shape, epsilon float32) {
	for c := range s.Channels {
		mean, variance := s.moments(x, c)
		m, inverse := float32(mean), float32(1/math.Sqrt(variance+float64(epsilon)))
		saved[c], saved[s.Channels+c] = m, inverse
		s.normalize(y, x, r, c, m, scale[c]*inverse, shift[c])
	}
}

// eval does what forward does, with mean and variance in place of the batch's statistics.
func eval(y, x, scale, shift, mean, variance, r []float32, s shape, epsilon float32) {
	for c := range s.Channels {
		inverse := float32(1 / math.Sqrt(float64(variance[c])+float64(epsilon)))
		s.normalize(y, x, r, c, mean[c], scale[c]*inverse, shift[c])
	}
}

// moments returns mean and variance of channel c. It sums in float64. The mean is then exact to the last bit of a float32, so
// the squares of the deviations from it do not cancel, and a channel whose values are all equal has a variance of exactly 0.
func (s shape) moments(x []float32, c int) (mean, variance float64) {
	count := float64(s.Images * s.Positions)
	for i := range s.Images {
		mean += sum(s.plane(x, i, c))
	}
	mean /= count
	for i := range s.Images {
		variance += squares(s.plane(x, i, c), mean)
	}
	return mean, variance / count
}

// normalize sets channel c of y to factor*(x-mean) + shift + r. It subtracts the mean first: with a large mean,
// factor*x and factor*mean would cancel.
func (s shape) normalize(y, x, r []float32, c int, mean, factor, shift float32) {
	for i := range s.Images {
		x, y := s.plane(x, i, c), s.plane(y, i, c)
		if len(r) > 0 {
			r := s.plane(r, i, c)
			for j, v := range x {
				y[j] = factor*(v-mean) + shift + r[j]
			}
		} else {
			for j, v := range x {
				y[j] = factor*(v-mean) + shift
			}
		}
		if !s.ReLU {
			continue
		}
		for j, v := range y {
			if v < 0 {
				y[j] = 0
			}
		}
	}
}

// backward takes dy, the gradient of forward's output y. With ReLU, dy becomes 0 wherever y is not above 0. dy is then
// the gradient of r too. dScale and dShift (channels) become the gradients of scale and shift. dx becomes the gradient of
// x, which includes the part through the statistics. dx may be the memory of x or of dy.
func backward(dx, dScale, dShift, dy, y, x, scale, saved []float32, s shape) {
	count := float64(s.Images * s.Positions)
	for c := range s.Channels {
		mean, inverse := saved[c], saved[s.Channels+c]
		var total, dot float64
		for i := range s.Images {
			x, dy := s.plane(x, i, c), s.plane(dy, i, c)
			if s.ReLU {
				maskReLU(dy, s.plane(y, i, c))
			}
			total += sum(dy)
			dot += products(dy, x, mean)
		}
		dShift[c], dScale[c] = float32(total), float32(dot*float64(inverse))
		factor := scale[c] * inverse
		offset, slope := float32(total/count), float32(dot*float64(inverse)*float64(inverse)/count)
		for i := range s.Images {
			x, dy, dx := s.plane(x, i, c), s.plane(dy, i, c), s.plane(dx, i, c)
			for j, g := range dy {
				dx[j] = factor * (g - offset - slope*(x[j]-mean))
			}
		}
	}
}

// running sets nextMean and nextVariance (channels) to images times the running statistics after the batch that saved
// belongs to: (1-momentum)*running + momentum*batch. The batch's variance is divided by the number of values less 1, or by
// 1 if there is one value.
func running(nextMean, nextVariance, mean, variance, saved []float32, s shape, momentum, epsilon float32) {
	count := float64(s.Images * s.Positions)
	m, images := float64(momentum), float64(s.Images)
	for c := range s.Channels {
		inverse := float64(saved[s.Channels+c])
		batch := max(0, 1/(inverse*inverse)-float64(epsilon)) * count / max(1, count-1)
		nextMean[c] = float32(images * ((1-m)*float64(mean[c]) + m*float64(saved[c])))
		nextVariance[c] = float32(images * ((1-m)*float64(variance[c]) + m*batch))
	}
}

// maskReLU sets dy to 0 where y is not above 0.
func maskReLU(dy, y []float32) {
	for j, v := range y {
		if !(v > 0) {
			dy[j] = 0
		}
	}
}

// sum, squares and products add four interleaved parts, whose additions do not depend on one another.
func sum(x []float32) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		a, b, c, d = a+float64(x[0]), b+float64(x[1]), c+float64(x[2]), d+float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// squares returns the sum of (x - mean)^2.
func squares(x []float32, mean float64) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		p, q, r, s := float64(x[0])-mean, float64(x[1])-mean, float64(x[2])-mean, float64(x[3])-mean
		a, b, c, d = a+p*p, b+q*q, c+r*r, d+s*s
		x = x[4:]
	}
	for _, v := range x {
		a += (float64(v) - mean) * (float64(v) - mean)
	}
	return (a + b) + (c + d)
}

// products returns the sum of dy * (x - mean).
func products(dy, x []float32, mean float32) float64 {
	var a, b, c, d float64
	for len(x) >= 4 && len(dy) >= 4 {
		a, b = a+float64(dy[0])*float64(x[0]-mean), b+float64(dy[1])*float64(x[1]-mean)
		c, d = c+float64(dy[2])*float64(x[2]-mean), d+float64(dy[3])*float64(x[3]-mean)
		x, dy = x[4:], dy[4:]
	}
	for j, v := range x {
		a += float64(dy[j]) * float64(v-mean)
	}
	return (a + b) + (c + d)
}
