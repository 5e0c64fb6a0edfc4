package sumofparts

import (
	"fmt"

	"fluentps/kernels/kernel"
)

// cases have zero, one and many parts, gaps between the parts, and the sum in place of the first part.
func cases() (cases []kernel.Case) {
	for _, s := range []kernel.Sizes{
		{0, 3, 5}, {5, 0, 5}, {1, 1, 1}, {7, 2, 7}, {31, 3, 37}, {257, 17, 257}, {1031, 4, 1040}, {4099, 2, 4099}, {3, 1031, 4},
	} {
		cases = append(cases, partsCase(s, false), partsCase(s, true))
	}
	return cases
}

func partsCase(s kernel.Sizes, inPlace bool) kernel.Case {
	n, parts, stride := s[0], s[1], s[2]
	c := kernel.Case{Name: fmt.Sprintf("n=%d parts=%d stride=%d in place=%t", n, parts, stride, inPlace), Sizes: s, Terms: parts}
	size := max(n, (parts-1)*stride+n)
	c.In[0], c.In[1], c.Want[1] = kernel.Random(size, 24), kernel.NaNs(n), make([]float64, n)
	for i := range n {
		for p := range parts {
			c.Want[1][i] += float64(c.In[0][p*stride+i])
		}
	}
	if inPlace {
		c.Over(1, 0)
	}
	return c
}
