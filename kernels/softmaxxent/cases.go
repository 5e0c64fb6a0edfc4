package softmaxxent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"fluentps/kernels/kernel"
)

// cases include logits that overflow exp. The gradient goes to memory of its own, over the logits, or
// is absent.
func cases() (cases []kernel.Case) {
	for _, s := range [][2]int{{1, 1}, {1, 2}, {7, 10}, {32, 10}, {13, 101}, {3, 1031}} {
		for _, scale := range []float32{1, 30, 1000} {
			for _, gradient := range []string{"none", "apart", "in place"} {
				c := lossCase(s[0], s[1], scale)
				c.Name += " gradient=" + gradient
				PlaceGradient(&c, gradient)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func lossCase(rows, cols int, scale float32) kernel.Case {
	c := kernel.Case{Name: fmt.Sprintf("rows=%d cols=%d scale=%g", rows, cols, scale), Sizes: kernel.Sizes{rows, cols}, Terms: cols}
	c.In[0], c.In[1], c.In[3], c.In[4] = kernel.Random(rows*cols, 8), make([]float32, rows), kernel.NaNs(rows), kernel.NaNs(rows)
	c.Want[2], c.Want[3], c.Want[4] = make([]float64, rows*cols), make([]float64, rows), make([]float64, rows)
	r := rand.New(rand.NewPCG(9, uint64(cols)))
	for i := range rows {
		label := r.IntN(cols)
		c.In[1][i] = float32(label)
		row := c.In[0][i*cols : (i+1)*cols]
		for j := range row {
			row[j] *= scale
		}
		top := float64(slices.Max(row))
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		c.Want[3][i] = math.Log(sum) + top - float64(row[label])
		if slices.Index(row, slices.Max(row)) == label {
			c.Want[4][i] = 1
		}
		for j, v := range row {
			c.Want[2][i*cols+j] = math.Exp(float64(v)-top) / sum
		}
		c.Want[2][i*cols+label]--
	}
	return c
}

// PlaceGradient makes argument 2 of a loss kernel absent, separate, or the same memory as argument 0.
func PlaceGradient(c *kernel.Case, where string) {
	switch where {
	case "none":
		c.Want[2] = nil
	case "apart":
		c.In[2] = kernel.NaNs(len(c.Want[2]))
	case "in place":
		c.In[2] = c.In[0]
		c.Alias[2] = 1
		c.Want[0], c.Want[2] = c.Want[2], nil
	}
}
