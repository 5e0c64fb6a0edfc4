package batchnorm

import (
	"fmt"
	"math"

	"fluentps/kernels/kernel"
)

const normEpsilon = 1e-5

// norm is a batch norm in float64. Its values resemble those of a network: means away from 0 and deviations near 1. In
// one channel of three, all values are equal.
type norm struct {
	images, channels, positions int
	relu, residual              bool
	x, r, scale, shift          []float32
	mean, inverse               []float64 // of the batch
	y                           []float64
}

// channel returns the channel of element i.
func (m *norm) channel(i int) int { return i / m.positions % m.channels }

func (m *norm) count() float64 { return float64(m.images * m.positions) }

func newNorm(n [3]int, relu, residual bool) *norm {
	m := &norm{images: n[0], channels: n[1], positions: n[2], relu: relu, residual: residual}
	size := n[0] * n[1] * n[2]
	m.x, m.scale, m.shift = kernel.Random(size, 18), kernel.Random(m.channels, 19), kernel.Random(m.channels, 20)
	if residual {
		m.r = kernel.Random(size, 21)
	}
	for i := range m.x {
		c := m.channel(i)
		m.x[i] = 2*m.x[i] + float32(c%4)
		if c%3 == 1 {
			m.x[i] = 0.3 * float32(c)
			m.scale[c] = 0.002 // else the derivative, 1/sqrt(epsilon), would magnify the error of every sum
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

func forwardCases() []kernel.Case {
	return images("residual", func(n [3]int, relu, residual bool) kernel.Case { return normCase(newNorm(n, relu, residual)) })
}

func evalCases() []kernel.Case {
	return images("residual", func(n [3]int, relu, residual bool) kernel.Case { return evalCase(newNorm(n, relu, residual)) })
}

func backwardCases() []kernel.Case {
	cases := images("in place", func(n [3]int, relu, inPlace bool) kernel.Case { return gradCase(newNorm(n, relu, false), inPlace) })
	for i := range cases {
		cases[i].Scalars = kernel.Scalars{benchMomentum, normEpsilon}
	}
	return cases
}

// images include a single position, a single image, both, and channels of equal values. Each size comes with and without
// relu, and with and without the option that `option` names.
func images(option string, newCase func(n [3]int, relu, with bool) kernel.Case) (cases []kernel.Case) {
	for _, n := range [][3]int{{1, 1, 1}, {1, 3, 1}, {1, 2, 13}, {7, 3, 1}, {2, 5, 4}, {3, 7, 11}, {4, 16, 64}, {13, 3, 257}, {2, 2, 1031}} {
		for _, relu := range []bool{false, true} {
			for _, with := range []bool{false, true} {
				c := newCase(n, relu, with)
				c.Name = fmt.Sprintf("images=%d channels=%d positions=%d relu=%t %s=%t", n[0], n[1], n[2], relu, option, with)
				c.Sizes, c.Scalars = kernel.Sizes{n[0], n[1], n[2]}, kernel.Scalars{normEpsilon}
				if relu {
					c.Sizes[3] = 1
				}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func normCase(m *norm) kernel.Case {
	c := kernel.Case{Terms: m.images * m.positions}
	c.In[0], c.In[1], c.In[2], c.In[3], c.In[4], c.In[5] = m.x, m.scale, m.shift, kernel.NaNs(len(m.x)), kernel.NaNs(2*m.channels), m.r
	c.Want[3], c.Want[4] = m.y, append(append([]float64{}, m.mean...), m.inverse...)
	return c
}

func evalCase(m *norm) kernel.Case {
	c := kernel.Case{Terms: 1}
	mean, variance := kernel.Random(m.channels, 22), kernel.Random(m.channels, 23)
	inverse := make([]float64, m.channels)
	for k := range variance {
		variance[k] = 1 + variance[k]/2
		inverse[k] = 1 / math.Sqrt(float64(variance[k])+normEpsilon)
	}
	c.In[0], c.In[1], c.In[2], c.In[3], c.In[4], c.In[5], c.In[6] = m.x, m.scale, m.shift, mean, variance, kernel.NaNs(len(m.x)), m.r
	c.Want[5] = m.output(kernel.Float64s(mean), inverse)
	return c
}

// gradCase writes the gradient of X to memory of its own, or over X.
func gradCase(m *norm, inPlace bool) kernel.Case {
	size := len(m.x)
	c := kernel.Case{Terms: m.images * m.positions}
	dy, y := kernel.Random(size, 24), narrow(m.y)
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
	c.In[0], c.In[1], c.In[2], c.In[3], c.In[4] = dy, y, m.x, m.scale, saved
	c.In[5], c.In[6], c.In[7] = kernel.NaNs(m.channels), kernel.NaNs(m.channels), kernel.NaNs(size)
	c.Want[0], c.Want[5], c.Want[6], c.Want[7] = masked, dScale, dShift, dx
	addStatistics(&c, m)
	if inPlace {
		c.In[7], c.Alias[7] = m.x, 1+2
		c.Want[2], c.Want[7] = dx, nil
	}
	return c
}

// addStatistics adds the running statistics and their next values to the launch of gradCase.
func addStatistics(c *kernel.Case, m *norm) {
	mean, variance := kernel.Random(m.channels, 25), kernel.Random(m.channels, 26)
	nextMean, nextVariance := make([]float64, m.channels), make([]float64, m.channels)
	for k := range m.channels {
		variance[k] = 1 + variance[k]/2
		batch := 1/(m.inverse[k]*m.inverse[k]) - normEpsilon // 0 for a single value, not 0/0
		nextMean[k] = float64(m.images) * ((1-benchMomentum)*float64(mean[k]) + benchMomentum*m.mean[k])
		nextVariance[k] = float64(m.images) * ((1-benchMomentum)*float64(variance[k]) + benchMomentum*batch*m.count()/max(1, m.count()-1))
	}
	c.In[8], c.In[9], c.In[10], c.In[11] = mean, variance, kernel.NaNs(m.channels), kernel.NaNs(m.channels)
	c.Want[10], c.Want[11] = nextMean, nextVariance
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}
