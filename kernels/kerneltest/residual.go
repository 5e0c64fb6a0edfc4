package kerneltest

import (
	"fmt"
	"math"

	"fluentps/kernels"
)

// residualCases are of the kernels of residual networks.
func residualCases(k *kernels.Kernel) []Case {
	switch k {
	case kernels.BatchNorm, kernels.BatchNormEval, kernels.BatchNormGrad:
		return normCases(k)
	case kernels.BatchNormRunning:
		return runningCases()
	case kernels.GlobalAvgPool, kernels.GlobalAvgPoolGrad:
		return averageCases(k)
	case kernels.ShortcutPad, kernels.ShortcutPadGrad:
		return shortcutCases(k)
	}
	return nil
}

const normEpsilon = 1e-5

// norm is a batch norm in float64. Its values are as a network has them: a mean away from 0, a deviation near 1; one channel
// in three has but one value everywhere.
type norm struct {
	images, channels, positions int
	relu, residual              bool
	x, r, scale, shift          []float32
	mean, inverse               []float64 // of the batch
	y                           []float64
}

// channel is that of element i.
func (m *norm) channel(i int) int { return i / m.positions % m.channels }

func (m *norm) count() float64 { return float64(m.images * m.positions) }

func newNorm(n [3]int, relu, residual bool) *norm {
	m := &norm{images: n[0], channels: n[1], positions: n[2], relu: relu, residual: residual}
	size := n[0] * n[1] * n[2]
	m.x, m.scale, m.shift = random(size, 18), random(m.channels, 19), random(m.channels, 20)
	if residual {
		m.r = random(size, 21)
	}
	for i := range m.x {
		c := m.channel(i)
		m.x[i] = 2*m.x[i] + float32(c%4)
		if c%3 == 1 {
			m.x[i] = 0.3 * float32(c)
			m.scale[c] = 0.002 // or its derivative, 1/sqrt(epsilon), would magnify the error of every sum
		}
	}
	m.mean, m.inverse = m.moments(m.x)
	m.y = m.output(m.mean, m.inverse)
	return m
}

func (m *norm) moments(x []float32) (mean, inverse []float64) {
	mean, inverse = make([]float64, m.channels), make([]float64, m.channels)
	for i, v := range x {
		mean[m.channel(i)] += float64(v) / m.count()
	}
	for i, v := range x {
		d := float64(v) - mean[m.channel(i)]
		inverse[m.channel(i)] += d * d / m.count()
	}
	for c, v := range inverse {
		inverse[c] = 1 / math.Sqrt(v+normEpsilon)
	}
	return mean, inverse
}

func (m *norm) output(mean, inverse []float64) []float64 {
	y := make([]float64, len(m.x))
	for i, v := range m.x {
		c := m.channel(i)
		y[i] = float64(m.scale[c])*(float64(v)-mean[c])*inverse[c] + float64(m.shift[c])
		if m.residual {
			y[i] += float64(m.r[i])
		}
		if m.relu {
			y[i] = max(0, y[i])
		}
	}
	return y
}

// normCases have one position, one image, both, and channels without deviation.
func normCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range [][3]int{{1, 1, 1}, {1, 3, 1}, {1, 2, 13}, {7, 3, 1}, {2, 5, 4}, {3, 7, 11}, {4, 16, 64}, {13, 3, 257}, {2, 2, 1031}} {
		for _, relu := range []bool{false, true} {
			for _, other := range []bool{false, true} {
				var c Case
				switch k {
				case kernels.BatchNorm:
					c = normCase(newNorm(n, relu, other))
				case kernels.BatchNormEval:
					c = evalCase(newNorm(n, relu, other))
				default:
					c = normGradCase(newNorm(n, relu, false), other)
				}
				c.name = fmt.Sprintf("images=%d channels=%d positions=%d relu=%t %s=%t", n[0], n[1], n[2], relu,
					map[bool]string{true: "in place", false: "residual"}[k == kernels.BatchNormGrad], other)
				c.sizes, c.scalars = kernels.Sizes{n[0], n[1], n[2]}, kernels.Scalars{normEpsilon}
				if relu {
					c.sizes[3] = 1
				}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func normCase(m *norm) Case {
	c := Case{terms: m.images * m.positions}
	c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5] = m.x, m.scale, m.shift, nans(len(m.x)), nans(2*m.channels), m.r
	c.want[3], c.want[4] = m.y, append(append([]float64{}, m.mean...), m.inverse...)
	return c
}

func evalCase(m *norm) Case {
	c := Case{terms: 1}
	mean, variance := random(m.channels, 22), random(m.channels, 23)
	inverse := make([]float64, m.channels)
	for k := range variance {
		variance[k] = 1 + variance[k]/2
		inverse[k] = 1 / math.Sqrt(float64(variance[k])+normEpsilon)
	}
	c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.in[6] = m.x, m.scale, m.shift, mean, variance, nans(len(m.x)), m.r
	c.want[5] = m.output(wide(mean), inverse)
	return c
}

// normGradCase has the gradient of X in memory of its own, or in that of X.
func normGradCase(m *norm, inPlace bool) Case {
	size := len(m.x)
	c := Case{terms: m.images * m.positions}
	dy, y := random(size, 24), narrow(m.y)
	saved := narrow(append(append([]float64{}, m.mean...), m.inverse...))
	masked, dx := make([]float64, size), make([]float64, size)
	dScale, dShift := make([]float64, m.channels), make([]float64, m.channels)
	normal := func(i int) float64 {
		return (float64(m.x[i]) - float64(saved[m.channel(i)])) * float64(saved[m.channels+m.channel(i)])
	}
	for i, g := range dy {
		if !m.relu || y[i] > 0 {
			masked[i] = float64(g)
		}
		dShift[m.channel(i)] += masked[i]
		dScale[m.channel(i)] += masked[i] * normal(i)
	}
	for i, g := range masked {
		k := m.channel(i)
		dx[i] = float64(m.scale[k]) * float64(saved[m.channels+k]) * (g - dShift[k]/m.count() - normal(i)*dScale[k]/m.count())
	}
	c.in[0], c.in[1], c.in[2], c.in[3], c.in[4] = dy, y, m.x, m.scale, saved
	c.in[5], c.in[6], c.in[7] = nans(m.channels), nans(m.channels), nans(size)
	c.want[0], c.want[5], c.want[6], c.want[7] = masked, dScale, dShift, dx
	if inPlace {
		c.in[7], c.alias[7] = m.x, 1+2
		c.want[2], c.want[7] = dx, nil
	}
	return c
}

// runningCases have a batch of one value, whose variance is 0, not 0/0.
func runningCases() []Case {
	const momentum = 0.1
	var cases []Case
	for _, n := range [][3]int{{1, 1, 1}, {1, 5, 2}, {7, 3, 1}, {32, 16, 64}, {128, 67, 1024}} {
		images, channels, count := n[0], n[1], float64(n[0]*n[2])
		c := Case{name: fmt.Sprintf("images=%d channels=%d positions=%d", n[0], n[1], n[2]), terms: 1}
		c.sizes, c.scalars = kernels.Sizes{n[0], n[1], n[2]}, kernels.Scalars{momentum, normEpsilon}
		mean, variance, saved := random(channels, 25), random(channels, 26), random(2*channels, 27)
		nextMean, nextVariance := make([]float64, channels), make([]float64, channels)
		for k := range channels {
			variance[k] = 1 + variance[k]/2
			batch := 1 + float64(saved[channels+k])/2
			if count == 1 {
				batch = 0
			}
			saved[channels+k] = float32(1 / math.Sqrt(batch+normEpsilon))
			nextMean[k] = float64(images) * ((1-momentum)*float64(mean[k]) + momentum*float64(saved[k]))
			nextVariance[k] = float64(images) * ((1-momentum)*float64(variance[k]) + momentum*batch*count/max(1, count-1))
		}
		c.in[0], c.in[1], c.in[2], c.in[3], c.in[4] = saved, mean, variance, nans(channels), nans(channels)
		c.want[3], c.want[4] = nextMean, nextVariance
		cases = append(cases, c)
	}
	return cases
}

func averageCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range [][3]int{{1, 1, 1}, {3, 1, 1}, {1, 7, 5}, {13, 3, 64}, {2, 64, 1031}, {0, 4, 5}} {
		images, channels, positions := n[0], n[1], n[2]
		planes, size := images*channels, images*channels*positions
		c := Case{name: fmt.Sprintf("images=%d channels=%d positions=%d", images, channels, positions), sizes: kernels.Sizes{images, channels, positions}}
		if k == kernels.GlobalAvgPool {
			c.in[0], c.in[1], c.terms = random(size, 28), nans(planes), positions
			c.want[1] = make([]float64, planes)
			for i, v := range c.in[0] {
				c.want[1][i/positions] += float64(v) / float64(positions)
			}
		} else {
			c.in[0], c.in[1] = random(planes, 29), nans(size)
			c.want[1] = make([]float64, size)
			for i := range c.want[1] {
				c.want[1][i] = float64(c.in[0][i/positions]) / float64(positions)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// shortcutCases have odd heights and widths, one pixel, and as many channels out as in.
func shortcutCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 3}, {2, 3, 5, 7, 6}, {3, 2, 8, 8, 4}, {2, 16, 32, 32, 32}, {5, 3, 2, 1, 3}, {1, 7, 13, 31, 11}, {0, 2, 4, 4, 4}} {
		images, channels, height, width, outs := n[0], n[1], n[2], n[3], n[4]
		outH, outW := (height+1)/2, (width+1)/2
		c := Case{name: fmt.Sprintf("images=%d channels=%d height=%d width=%d out=%d", images, channels, height, width, outs), sizes: n, terms: 1}
		x, dy := random(images*channels*height*width, 30), random(images*outs*outH*outW, 31)
		y, dx := make([]float64, len(dy)), wide(x) // what lies in dX before is added to
		for to := range y {
			j, i, channel, image := to%outW, to/outW%outH, to/(outW*outH)%outs, to/(outW*outH*outs)
			if channel < channels {
				from := ((image*channels+channel)*height+2*i)*width + 2*j
				y[to] = float64(x[from])
				dx[from] += float64(dy[to])
			}
		}
		if k == kernels.ShortcutPad {
			c.in[0], c.in[1], c.want[1] = x, nans(len(dy)), y
		} else {
			c.in[0], c.in[1], c.want[1] = dy, x, dx
		}
		cases = append(cases, c)
	}
	return cases
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}
