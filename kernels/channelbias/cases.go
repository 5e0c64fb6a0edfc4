package channelbias

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func forwardCases() []kernel.Case {
	return images(func(c *kernel.Case, channels, positions int) {
		c.In[1], c.Want[0], c.Terms = kernel.Random(channels, 15), make([]float64, len(c.In[0])), 1
		for i, v := range c.In[0] {
			c.Want[0][i] = max(0, float64(v)+float64(c.In[1][i/positions%channels]))
		}
	})
}

func gradientCases() []kernel.Case {
	return images(func(c *kernel.Case, channels, positions int) {
		c.In[1], c.Want[1], c.Terms = kernel.NaNs(channels), make([]float64, channels), c.Sizes[0]*positions
		for i, v := range c.In[0] {
			c.Want[1][i/positions%channels] += float64(v)
		}
	})
}

func images(complete func(c *kernel.Case, channels, positions int)) (cases []kernel.Case) {
	for _, n := range []kernel.Sizes{{1, 1, 1}, {1, 1, 13}, {7, 1, 1}, {1, 11, 3}, {5, 3, 4}, {32, 6, 196}, {3, 17, 257},
		{0, 3, 5}, {101, 2, 103}, {301, 2, 103}} {
		c := kernel.Case{Name: fmt.Sprintf("images=%d channels=%d positions=%d", n[0], n[1], n[2]), Sizes: n}
		c.In[0] = kernel.Random(n[0]*n[1]*n[2], 14)
		complete(&c, n[1], n[2])
		cases = append(cases, c)
	}
	return cases
}
