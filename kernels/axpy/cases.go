package axpy

import (
	"fmt"

	"fluentps/kernels/kernel"
)

var factors = []float32{0, 1, -0.7}

func addCases() (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for _, a := range factors {
			c := kernel.Case{Name: fmt.Sprintf("n=%d a=%g", n, a), Sizes: kernel.Sizes{n}, Scalars: kernel.Scalars{a}}
			c.In[0], c.In[1], c.Want[1] = kernel.Random(n, 20), kernel.Random(n, 21), make([]float64, n)
			for i := range n {
				c.Want[1][i] = float64(c.In[1][i]) + float64(a)*float64(c.In[0][i])
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// scaleCases write the output to memory of its own, and in place.
func scaleCases() (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for _, a := range factors {
			cases = append(cases, scaleCase(n, a, false), scaleCase(n, a, true))
		}
	}
	return cases
}

func scaleCase(n int, a float32, inPlace bool) kernel.Case {
	c := kernel.Case{Name: fmt.Sprintf("n=%d a=%g in place=%t", n, a, inPlace), Sizes: kernel.Sizes{n}, Scalars: kernel.Scalars{a}}
	c.In[0], c.In[1], c.Want[1] = kernel.Random(n, 20), kernel.NaNs(n), make([]float64, n)
	for i := range n {
		c.Want[1][i] = float64(a) * float64(c.In[0][i])
	}
	if inPlace {
		c.Over(1, 0)
	}
	return c
}
