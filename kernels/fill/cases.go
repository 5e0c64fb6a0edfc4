package fill

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func cases() (cases []kernel.Case) {
	for _, n := range []int{0, 1, 7, 1031} {
		c := kernel.Case{Name: fmt.Sprintf("n=%d", n), Sizes: kernel.Sizes{n}, Scalars: kernel.Scalars{0.1}}
		c.In[0], c.Want[0] = kernel.NaNs(n), make([]float64, n)
		for i := range n {
			c.Want[0][i] = float64(float32(0.1))
		}
		cases = append(cases, c)
	}
	return cases
}
