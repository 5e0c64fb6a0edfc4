package kerneltest

import (
	"fmt"
	"math"

	"fluentps/kernels"
)

// optimizerCases have the first step, whose state is 0, and a later one; without weight decay and with; next
// beside the parameters and over them.
func optimizerCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range lengths {
		for variant := range 4 {
			c := optimizerCase(k, n, variant&1 == 0, float32(variant&1)*0.01)
			if variant >= 2 && k != kernels.LARSRate {
				c.name += " in place"
				c.over(2, 0)
			}
			cases = append(cases, c)
		}
	}
	if k == kernels.LARSRate {
		cases = append(cases, rateCases()...)
	}
	return cases
}

func optimizerCase(k *kernels.Kernel, n int, first bool, decay float32) Case {
	c := Case{name: fmt.Sprintf("n=%d first=%t decay=%g", n, first, decay), sizes: kernels.Sizes{n}, terms: 1}
	c.in[0], c.in[1], c.in[2] = random(n, 30), random(n, 31), nans(n)
	for i := range c.in[1] {
		c.in[1][i] *= 96
	}
	const lr, scale, momentum = 0.5, float32(1. / 96), 0.9
	c.scalars = kernels.Scalars{lr, scale, decay, momentum}
	m := make([]float32, n)
	if !first {
		m = random(n, 32)
	}
	switch k {
	case kernels.SGD:
		c.scalars[3] = 0
		c.want[2] = momentumSteps(&c, m, 1, false)
	case kernels.Momentum, kernels.Nesterov:
		c.in[3], c.want[3] = m, make([]float64, n)
		c.want[2] = momentumSteps(&c, m, 1, k == kernels.Nesterov)
	case kernels.LARS:
		c.in[3], c.in[4], c.want[3] = m, []float32{0.3}, make([]float64, n)
		c.want[2] = momentumSteps(&c, m, float64(c.in[4][0]), false)
	case kernels.Adam:
		c.in[3], c.in[4] = m, make([]float32, n)
		if !first {
			for i, x := range random(n, 33) {
				c.in[4][i] = x * x
			}
		}
		adamStep(&c, lr, scale, decay, first)
	case kernels.LARSRate:
		c.scalars, c.terms = kernels.Scalars{scale, decay, 0.7}, n
		c.in[2] = nans(1)
		c.want[2] = []float64{larsRate(&c)}
	}
	return c
}

// momentumSteps are the next parameters; the state goes to c.want[3], if there is one.
func momentumSteps(c *Case, m []float32, rate float64, nesterov bool) []float64 {
	lr, k, decay, mu := float64(c.scalars[0]), float64(c.scalars[1]), float64(c.scalars[2]), float64(c.scalars[3])
	next := make([]float64, len(m))
	for i := range next {
		w := float64(c.in[0][i])
		g := rate * (k*float64(c.in[1][i]) + decay*w)
		state := mu*float64(m[i]) + g
		switch {
		case c.want[3] == nil: // sgd
			next[i] = w - lr*g
			continue
		case nesterov:
			next[i] = w - lr*(g+mu*state)
		default:
			next[i] = w - lr*state
		}
		c.want[3][i] = state
	}
	return next
}

func adamStep(c *Case, lr float64, scale, decay float32, first bool) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	t := 7.0
	if first {
		t = 1
	}
	c.in[5] = []float32{beta1, float32(1 - float64(beta1)), beta2, float32(1 - float64(beta2)), epsilon}
	c.scalars = kernels.Scalars{scale, decay, float32(lr / (1 - math.Pow(beta1, t))), float32(1 / math.Sqrt(1-math.Pow(beta2, t)))}
	n := len(c.in[0])
	for i := range n / 3 { // these gradients have vanished
		c.in[1][3*i] = 0
	}
	c.want[2], c.want[3], c.want[4] = make([]float64, n), make([]float64, n), make([]float64, n)
	b := func(i int) float64 { return float64(c.in[5][i]) }
	for i := range n {
		w := float64(c.in[0][i])
		g := float64(scale)*float64(c.in[1][i]) + float64(decay)*w
		m := b(0)*float64(c.in[3][i]) + b(1)*g
		v := b(2)*float64(c.in[4][i]) + b(3)*g*g
		c.want[2][i] = w - float64(c.scalars[2])*m/(float64(c.scalars[3])*math.Sqrt(v)+b(4))
		c.want[3][i], c.want[4][i] = m, v
	}
}

func larsRate(c *Case) float64 {
	k, decay, trust := float64(c.scalars[0]), float64(c.scalars[1]), float64(c.scalars[2])
	var ww, gg, dd float64
	for i, x := range c.in[0] {
		w, g := float64(x), float64(c.in[1][i])
		ww += w * w
		gg += k * g * k * g
		dd += decay * w * decay * w
	}
	if ww == 0 {
		return trust
	}
	return trust * math.Sqrt(ww) / (math.Sqrt(gg) + math.Sqrt(dd))
}

// rateCases are layers of zeros, without a gradient, with squares beyond float32, and with a NaN; and a long layer.
func rateCases() []Case {
	var cases []Case
	for _, l := range []struct {
		name       string
		w, g, rate float64
	}{
		{"no parameters", 0, 1, 0.5}, {"no gradient", 1, 0, float64(float32(1e30))}, {"large", 1e30, 2e30, 0.25}, {"small", 2e-30, 1e-30, 1},
		{"NaN gradient", 1, math.NaN(), math.NaN()}, {"NaN parameter", math.NaN(), 1, math.NaN()},
	} {
		c := Case{name: l.name, sizes: kernels.Sizes{257}, scalars: kernels.Scalars{1, 0, 0.5}, terms: 257}
		c.in[0], c.in[1], c.in[2], c.want[2] = make([]float32, 257), make([]float32, 257), nans(1), []float64{l.rate}
		for i := range c.in[0] {
			c.in[0][i], c.in[1][i] = float32(l.w), float32(l.g)
		}
		cases = append(cases, c)
	}
	return append(cases, optimizerCase(kernels.LARSRate, 300_007, true, 0.01))
}
