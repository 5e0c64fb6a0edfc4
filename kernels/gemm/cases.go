package gemm

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func cases(op Op) (cases []kernel.Case) {
	for _, s := range []kernel.Sizes{
		{1, 1, 1}, {1, 1, 7}, {2, 3, 5}, {7, 1, 13}, {1, 17, 3}, {4, 4, 4}, {3, 5, 0},
		{31, 10, 257}, {33, 37, 41}, {64, 48, 256}, {67, 29, 521}, {32, 10, 784}, {101, 3, 1031}, {705, 749, 21},
	} {
		for _, beta := range []float32{0, 1, -0.5} {
			for _, bias := range []bool{false, true} {
				cases = append(cases, productCase(op, s, beta, bias))
			}
		}
	}
	return cases
}

func productCase(op Op, s kernel.Sizes, beta float32, bias bool) kernel.Case {
	m, n, k := s[0], s[1], s[2]
	c := kernel.Case{Name: fmt.Sprintf("m=%d n=%d k=%d beta=%g bias=%t", m, n, k, beta, bias), Sizes: s, Terms: k + 2}
	c.Scalars[0] = beta
	c.In[0], c.In[1], c.In[2] = kernel.Random(m*k, 1), kernel.Random(k*n, 2), kernel.Random(m*n, 3)
	if beta == 0 {
		c.In[2] = kernel.NaNs(m * n) // beta 0 must not read C
	}
	if bias {
		c.In[3] = kernel.Random(n, 4)
	}
	want := make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum float64
			for t := range k {
				x, y := i*k+t, t*n+j
				if op == TN {
					x = t*m + i
				}
				if op == NT {
					y = j*k + t
				}
				sum += float64(c.In[0][x]) * float64(c.In[1][y])
			}
			if beta != 0 {
				sum += float64(beta) * float64(c.In[2][i*n+j])
			}
			if bias {
				sum += float64(c.In[3][j])
			}
			want[i*n+j] = sum
		}
	}
	c.Want[2] = want
	return c
}
