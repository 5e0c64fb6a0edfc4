package lars

import (
	"math"

	"fluentps/kernels/kernel"
	"fluentps/kernels/sgd"
)

func updateCases() []kernel.Case {
	return sgd.RuleCases(func(c *kernel.Case, s sgd.Start) {
		c.In[4] = []float32{0.3}
		sgd.MomentumCase(c, s, float64(c.In[4][0]))
	})
}

// rateCases are layers of many lengths: of random values, of zeros, without a gradient, with squares beyond float32, and
// with a NaN; and one long layer.
func rateCases() (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for variant := range 4 {
			cases = append(cases, sgd.RuleCase(n, variant&1 == 0, float32(variant&1)*0.01, completeRate))
		}
	}
	for _, l := range []struct {
		name       string
		w, g, rate float64
	}{
		{"no parameters", 0, 1, 0.5}, {"no gradient", 1, 0, float64(float32(1e30))}, {"large", 1e30, 2e30, 0.25}, {"small", 2e-30, 1e-30, 1},
		{"NaN gradient", 1, math.NaN(), math.NaN()}, {"NaN parameter", math.NaN(), 1, math.NaN()},
	} {
		c := kernel.Case{Name: l.name, Sizes: kernel.Sizes{257}, Scalars: kernel.Scalars{1, 0, 0.5}, Terms: 257}
		c.In[0], c.In[1], c.In[2], c.Want[2] = make([]float32, 257), make([]float32, 257), kernel.NaNs(1), []float64{l.rate}
		for i := range c.In[0] {
			c.In[0][i], c.In[1][i] = float32(l.w), float32(l.g)
		}
		cases = append(cases, c)
	}
	return append(cases, sgd.RuleCase(300_007, true, 0.01, completeRate))
}

// completeRate turns the case of an update into a case of the rate.
func completeRate(c *kernel.Case, _ sgd.Start) {
	c.Scalars, c.Terms = kernel.Scalars{c.Scalars[1], c.Scalars[2], 0.7}, len(c.In[0])
	k, decay, trust := float64(c.Scalars[0]), float64(c.Scalars[1]), float64(c.Scalars[2])
	var ww, gg, dd float64
	for i, x := range c.In[0] {
		w, g := float64(x), float64(c.In[1][i])
		ww += w * w
		gg += k * g * k * g
		dd += decay * w * decay * w
	}
	rate := trust
	if ww != 0 {
		rate = trust * math.Sqrt(ww) / (math.Sqrt(gg) + math.Sqrt(dd))
	}
	c.In[2], c.Want[2] = kernel.NaNs(1), []float64{rate}
}
