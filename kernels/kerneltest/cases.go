package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"fluentps/kernels"
)

// Cases returns the launches that Check makes for k; none for a kernel it does not know.
func Cases(k *kernels.Kernel) []Case {
	switch k {
	case kernels.GemmNN, kernels.GemmNT, kernels.GemmTN:
		return gemmCases(k)
	case kernels.BiasReLU, kernels.ReLUGrad, kernels.BiasGrad:
		return matrixCases(k)
	case kernels.SoftmaxXent:
		return softmaxCases()
	case kernels.SigmoidXent:
		return sigmoidCases()
	case kernels.Fill:
		return fillCases()
	case kernels.Axpy, kernels.Scale, kernels.ResidualAdd:
		return vectorCases(k)
	case kernels.SumOfParts:
		return partsCases()
	case kernels.SGD, kernels.Momentum, kernels.Nesterov, kernels.Adam, kernels.LARSRate, kernels.LARS:
		return optimizerCases(k)
	case kernels.ToFloat16, kernels.FromFloat16, kernels.ToBFloat16, kernels.FromBFloat16:
		return castCases(k)
	case kernels.TopK:
		return topKCases()
	case kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter:
		return convolutionCases(k)
	case kernels.ChannelBiasReLU, kernels.ChannelBiasGrad:
		return channelCases(k)
	case kernels.MaxPool, kernels.MaxPoolGrad:
		return poolCases(k)
	}
	return residualCases(k)
}

func gemmCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, s := range []kernels.Sizes{
		{1, 1, 1}, {1, 1, 7}, {2, 3, 5}, {7, 1, 13}, {1, 17, 3}, {4, 4, 4}, {3, 5, 0},
		{31, 10, 257}, {33, 37, 41}, {64, 48, 256}, {67, 29, 521}, {32, 10, 784}, {101, 3, 1031}, {705, 749, 21},
	} {
		for _, beta := range []float32{0, 1, -0.5} {
			for _, bias := range []bool{false, true} {
				cases = append(cases, gemmCase(k, s, beta, bias))
			}
		}
	}
	return cases
}

func gemmCase(kernel *kernels.Kernel, s kernels.Sizes, beta float32, bias bool) Case {
	m, n, k := s[0], s[1], s[2]
	c := Case{name: fmt.Sprintf("m=%d n=%d k=%d beta=%g bias=%t", m, n, k, beta, bias), sizes: s, terms: k + 2}
	c.scalars[0] = beta
	c.in[0], c.in[1], c.in[2] = random(m*k, 1), random(k*n, 2), random(m*n, 3)
	if beta == 0 {
		c.in[2] = nans(m * n) // beta 0 must not read C
	}
	if bias {
		c.in[3] = random(n, 4)
	}
	want := make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum float64
			for t := range k {
				x, y := i*k+t, t*n+j
				if kernel == kernels.GemmTN {
					x = t*m + i
				}
				if kernel == kernels.GemmNT {
					y = j*k + t
				}
				sum += float64(c.in[0][x]) * float64(c.in[1][y])
			}
			if beta != 0 {
				sum += float64(beta) * float64(c.in[2][i*n+j])
			}
			if bias {
				sum += float64(c.in[3][j])
			}
			want[i*n+j] = sum
		}
	}
	c.want[2] = want
	return c
}

func matrixCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, s := range [][2]int{{1, 1}, {1, 13}, {13, 1}, {7, 11}, {32, 128}, {67, 257}, {1031, 3}, {0, 5}} {
		rows, cols := s[0], s[1]
		c := Case{name: fmt.Sprintf("rows=%d cols=%d", rows, cols), sizes: kernels.Sizes{rows, cols}, terms: 1}
		c.in[0] = random(rows*cols, 5)
		want := make([]float64, rows*cols)
		switch k {
		case kernels.BiasReLU:
			c.in[1] = random(cols, 6)
			for i := range want {
				want[i] = max(0, float64(c.in[0][i])+float64(c.in[1][i%cols]))
			}
			c.want[0] = want
		case kernels.ReLUGrad:
			c.in[1] = random(rows*cols, 7)
			for i, y := range c.in[1] {
				c.in[1][i] = max(0, y)
				if y > 0 {
					want[i] = float64(c.in[0][i])
				}
			}
			c.want[0] = want
		case kernels.BiasGrad:
			c.in[1], c.terms = nans(cols), rows
			sums := make([]float64, cols)
			for i, v := range c.in[0] {
				sums[i%cols] += float64(v)
			}
			c.want[1] = sums
		}
		cases = append(cases, c)
	}
	return cases
}

// softmaxCases include logits that overflow exp, and the gradient written over the logits, beside
// them, or not at all.
func softmaxCases() []Case {
	var cases []Case
	for _, s := range [][2]int{{1, 1}, {1, 2}, {7, 10}, {32, 10}, {13, 101}, {3, 1031}} {
		for _, scale := range []float32{1, 30, 1000} {
			for _, gradient := range []string{"none", "apart", "in place"} {
				c := softmaxCase(s[0], s[1], scale)
				c.name += " gradient=" + gradient
				placeGradient(&c, gradient)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func softmaxCase(rows, cols int, scale float32) Case {
	c := Case{name: fmt.Sprintf("rows=%d cols=%d scale=%g", rows, cols, scale), sizes: kernels.Sizes{rows, cols}, terms: cols}
	c.in[0], c.in[1], c.in[3], c.in[4] = random(rows*cols, 8), make([]float32, rows), nans(rows), nans(rows)
	c.want[2], c.want[3], c.want[4] = make([]float64, rows*cols), make([]float64, rows), make([]float64, rows)
	r := rand.New(rand.NewPCG(9, uint64(cols)))
	for i := range rows {
		label := r.IntN(cols)
		c.in[1][i] = float32(label)
		row := c.in[0][i*cols : (i+1)*cols]
		for j := range row {
			row[j] *= scale
		}
		top := float64(slices.Max(row))
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		c.want[3][i] = math.Log(sum) + top - float64(row[label])
		if slices.Index(row, slices.Max(row)) == label {
			c.want[4][i] = 1
		}
		for j, v := range row {
			c.want[2][i*cols+j] = math.Exp(float64(v)-top) / sum
		}
		c.want[2][i*cols+label]--
	}
	return c
}

func sigmoidCases() []Case {
	var cases []Case
	for _, rows := range []int{1, 2, 7, 32, 1031} {
		for _, scale := range []float32{1, 30, 1000} {
			for _, gradient := range []string{"none", "apart", "in place"} {
				c := sigmoidCase(rows, scale)
				c.name += " gradient=" + gradient
				placeGradient(&c, gradient)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func sigmoidCase(rows int, scale float32) Case {
	c := Case{name: fmt.Sprintf("rows=%d scale=%g", rows, scale), sizes: kernels.Sizes{rows}, terms: 1}
	c.in[0], c.in[1], c.in[3], c.in[4] = random(rows, 10), make([]float32, rows), nans(rows), nans(rows)
	c.want[2], c.want[3], c.want[4] = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	r := rand.New(rand.NewPCG(11, uint64(rows)))
	for i := range rows {
		c.in[0][i] *= scale
		z, y := float64(c.in[0][i]), float64(r.IntN(2))
		c.in[1][i] = float32(y)
		// The loss of label 1 is log(1+exp(-z)); of label 0 the same with z's sign turned.
		s := z
		if y == 0 {
			s = -z
		}
		c.want[3][i] = math.Log1p(math.Exp(-s))
		if math.IsInf(c.want[3][i], 0) {
			c.want[3][i] = -s
		}
		c.want[2][i] = 1/(1+math.Exp(-z)) - y
		if (z > 0) == (y == 1) {
			c.want[4][i] = 1
		}
	}
	return c
}

// placeGradient makes argument 2 of a loss kernel absent, separate, or the same memory as argument 0.
func placeGradient(c *Case, where string) {
	switch where {
	case "none":
		c.want[2] = nil
	case "apart":
		c.in[2] = nans(len(c.want[2]))
	case "in place":
		c.in[2] = c.in[0]
		c.alias[2] = 1
		c.want[0], c.want[2] = c.want[2], nil
	}
}

func fillCases() []Case {
	var cases []Case
	for _, n := range []int{0, 1, 7, 1031} {
		c := Case{name: fmt.Sprintf("n=%d", n), sizes: kernels.Sizes{n}, scalars: kernels.Scalars{0.1}}
		c.in[0], c.want[0] = nans(n), make([]float64, n)
		for i := range n {
			c.want[0][i] = float64(float32(0.1))
		}
		cases = append(cases, c)
	}
	return cases
}
