package targetloss

import (
	"fmt"
	"math"

	"fluentps/kernels/kernel"
	"fluentps/kernels/softmaxxent"
)

func squaredCases() []kernel.Case {
	return cases(nil, func(d float64) (loss, grad float64) { return d * d, 2 * d })
}

func huberCases() (all []kernel.Case) {
	for _, delta := range []float32{0.01, 1, 1000} {
		all = append(all, cases([]float32{delta}, func(d float64) (loss, grad float64) {
			if f := float64(delta); math.Abs(d) > f {
				return f*math.Abs(d) - f*f/2, math.Copysign(f, d)
			}
			return d * d / 2, d
		})...)
	}
	return all
}

// cases are launches whose losses and gradients follow from the difference of prediction and target, which is exact in float32.
func cases(scalars []float32, of func(d float64) (loss, grad float64)) (all []kernel.Case) {
	for _, rows := range []int{1, 2, 7, 32, 1031} {
		for _, scale := range []float32{0.01, 1, 1e6} {
			for _, gradient := range []string{"none", "apart", "in place"} {
				c := kernel.Case{Sizes: kernel.Sizes{rows}, Terms: 1, Name: fmt.Sprintf("rows=%d scale=%g delta=%v gradient=%s", rows, scale,
					scalars, gradient)}
				copy(c.Scalars[:], scalars)
				c.In[0], c.In[1], c.In[3], c.In[4] = kernel.Random(rows, 12), kernel.Random(rows, 13), kernel.NaNs(rows), kernel.NaNs(rows)
				c.Want[2], c.Want[3], c.Want[4] = make([]float64, rows), make([]float64, rows), make([]float64, rows)
				for i := range rows {
					c.In[0][i], c.In[1][i] = coarse(c.In[0][i])*scale, coarse(c.In[1][i])*scale
					d := float64(c.In[0][i]) - float64(c.In[1][i])
					c.Want[3][i], c.Want[2][i] = of(d)
					c.Want[4][i] = math.Abs(d)
				}
				softmaxxent.PlaceGradient(&c, gradient)
				all = append(all, c)
			}
		}
	}
	return all
}

// coarse keeps few digits of a value, so that predictions are often as large as their targets.
func coarse(v float32) float32 { return float32(math.Round(float64(v)*64)) / 64 }
