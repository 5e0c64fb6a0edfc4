package biasrelu

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func forwardCases() []kernel.Case {
	return matrices(func(c *kernel.Case, rows, cols int) {
		c.In[1] = kernel.Random(cols, 6)
		for i, x := range c.In[0] {
			c.Want[0][i] = max(0, float64(x)+float64(c.In[1][i%cols]))
		}
	})
}

func backwardCases() []kernel.Case {
	return matrices(func(c *kernel.Case, rows, cols int) {
		c.In[1] = kernel.Random(rows*cols, 7)
		for i, y := range c.In[1] {
			c.In[1][i] = max(0, y)
			if y > 0 {
				c.Want[0][i] = float64(c.In[0][i])
			}
		}
	})
}

// matrices returns cases whose vector 0 has rows x cols elements. complete adds the rest, with the result for vector 0.
func matrices(complete func(c *kernel.Case, rows, cols int)) (cases []kernel.Case) {
	for _, s := range kernel.Matrices {
		rows, cols := s[0], s[1]
		c := kernel.Case{Name: fmt.Sprintf("rows=%d cols=%d", rows, cols), Sizes: kernel.Sizes{rows, cols}, Terms: 1}
		c.In[0], c.Want[0] = kernel.Random(rows*cols, 5), make([]float64, rows*cols)
		complete(&c, rows, cols)
		cases = append(cases, c)
	}
	return cases
}
