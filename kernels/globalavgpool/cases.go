package globalavgpool

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func forwardCases() []kernel.Case {
	return images(func(c *kernel.Case, planes, positions int) {
		c.In[0], c.In[1], c.Terms = kernel.Random(planes*positions, 28), kernel.NaNs(planes), positions
		c.Want[1] = make([]float64, planes)
		for i, v := range c.In[0] {
			c.Want[1][i/positions] += float64(v) / float64(positions)
		}
	})
}

func backwardCases() []kernel.Case {
	return images(func(c *kernel.Case, planes, positions int) {
		c.In[0], c.In[1] = kernel.Random(planes, 29), kernel.NaNs(planes*positions)
		c.Want[1] = make([]float64, planes*positions)
		for i := range c.Want[1] {
			c.Want[1][i] = float64(c.In[0][i/positions]) / float64(positions)
		}
	})
}

func images(complete func(c *kernel.Case, planes, positions int)) (cases []kernel.Case) {
	for _, n := range []kernel.Sizes{{1, 1, 1}, {3, 1, 1}, {1, 7, 5}, {13, 3, 64}, {2, 64, 1031}, {0, 4, 5}} {
		c := kernel.Case{Name: fmt.Sprintf("images=%d channels=%d positions=%d", n[0], n[1], n[2]), Sizes: n}
		complete(&c, n[0]*n[1], n[2])
		cases = append(cases, c)
	}
	return cases
}
