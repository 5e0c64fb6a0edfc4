package adam

import (
	"math"

	"fluentps/kernels/kernel"
	"fluentps/kernels/sgd"
)

func cases() []kernel.Case { return sgd.RuleCases(complete) }

// complete adds the moments, the constants, and the result of the step.
func complete(c *kernel.Case, s sgd.Start) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	lr, k, decay := float64(c.Scalars[0]), c.Scalars[1], c.Scalars[2]
	n, t := len(c.In[0]), 1.0
	c.In[3], c.In[4] = s.State, make([]float32, n)
	if !s.First {
		t = 7
		for i, x := range kernel.Random(n, 33) {
			c.In[4][i] = x * x
		}
	}
	c.In[5] = []float32{beta1, float32(1 - float64(beta1)), beta2, float32(1 - float64(beta2)), epsilon}
	c.Scalars = kernel.Scalars{k, decay, float32(lr / (1 - math.Pow(beta1, t))), float32(1 / math.Sqrt(1-math.Pow(beta2, t)))}
	for i := range n / 3 { // these gradients are 0
		c.In[1][3*i] = 0
	}
	c.Want[2], c.Want[3], c.Want[4] = make([]float64, n), make([]float64, n), make([]float64, n)
	b := func(i int) float64 { return float64(c.In[5][i]) }
	for i := range n {
		w := float64(c.In[0][i])
		g := float64(k)*float64(c.In[1][i]) + float64(decay)*w
		m := b(0)*float64(c.In[3][i]) + b(1)*g
		v := b(2)*float64(c.In[4][i]) + b(3)*g*g
		c.Want[2][i] = w - float64(c.Scalars[2])*m/(float64(c.Scalars[3])*math.Sqrt(v)+b(4))
		c.Want[3][i], c.Want[4][i] = m, v
	}
}
