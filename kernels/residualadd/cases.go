package residualadd

import (
	"fmt"

	"fluentps/kernels/kernel"
)

// cases write the sum over vector `over`, or to memory of its own if over is 2.
func cases() (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for over := range 3 {
			c := kernel.Case{Name: fmt.Sprintf("n=%d over=%d", n, over), Sizes: kernel.Sizes{n}}
			c.In[0], c.In[1], c.In[2], c.Want[2] = kernel.Random(n, 22), kernel.Random(n, 23), kernel.NaNs(n), make([]float64, n)
			for i := range n {
				c.Want[2][i] = max(0, float64(c.In[0][i])+float64(c.In[1][i]))
			}
			if over < 2 {
				c.Over(2, over)
			}
			cases = append(cases, c)
		}
	}
	return cases
}
