package sigmoidxent

import (
	"fmt"
	"math"
	"math/rand/v2"

	"fluentps/kernels/kernel"
	"fluentps/kernels/softmaxxent"
)

func cases() (cases []kernel.Case) {
	for _, rows := range []int{1, 2, 7, 32, 1031} {
		for _, scale := range []float32{1, 30, 1000} {
			for _, gradient := range []string{"none", "apart", "in place"} {
				c := lossCase(rows, scale)
				c.Name += " gradient=" + gradient
				softmaxxent.PlaceGradient(&c, gradient)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func lossCase(rows int, scale float32) kernel.Case {
	c := kernel.Case{Name: fmt.Sprintf("rows=%d scale=%g", rows, scale), Sizes: kernel.Sizes{rows}, Terms: 1}
	c.In[0], c.In[1], c.In[3], c.In[4] = kernel.Random(rows, 10), make([]float32, rows), kernel.NaNs(rows), kernel.NaNs(rows)
	c.Want[2], c.Want[3], c.Want[4] = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	r := rand.New(rand.NewPCG(11, uint64(rows)))
	for i := range rows {
		c.In[0][i] *= scale
		z, y := float64(c.In[0][i]), float64(r.IntN(2))
		c.In[1][i] = float32(y)
		// The loss of label 1 is log(1+exp(-z)). The loss of label 0 is the same with the sign of z reversed.
		s := z
		if y == 0 {
			s = -z
		}
		c.Want[3][i] = math.Log1p(math.Exp(-s))
		if math.IsInf(c.Want[3][i], 0) {
			c.Want[3][i] = -s
		}
		c.Want[2][i] = 1/(1+math.Exp(-z)) - y
		if (z > 0) == (y == 1) {
			c.Want[4][i] = 1
		}
	}
	return c
}
