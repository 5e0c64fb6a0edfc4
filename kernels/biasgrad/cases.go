package biasgrad

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func cases() (cases []kernel.Case) {
	for _, s := range kernel.Matrices {
		rows, cols := s[0], s[1]
		c := kernel.Case{Name: fmt.Sprintf("rows=%d cols=%d", rows, cols), Sizes: kernel.Sizes{rows, cols}, Terms: rows}
		c.In[0], c.In[1], c.Want[1] = kernel.Random(rows*cols, 5), kernel.NaNs(cols), make([]float64, cols)
		for i, v := range c.In[0] {
			c.Want[1][i%cols] += float64(v)
		}
		cases = append(cases, c)
	}
	return cases
}
