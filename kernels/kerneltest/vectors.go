package kerneltest

import (
	"fmt"

	"fluentps/kernels"
)

// lengths of vectors: none, one, primes, multiples of vector registers and of blocks, and one off these.
var lengths = []int{0, 1, 2, 7, 31, 64, 257, 1024, 1031, 4099}

// vectorCases are with separate memory, and written over each input.
func vectorCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range lengths {
		switch k {
		case kernels.Axpy:
			for _, a := range []float32{0, 1, -0.7} {
				cases = append(cases, axpyCase(n, a))
			}
		case kernels.Scale:
			for _, a := range []float32{0, 1, -0.7} {
				cases = append(cases, scaleCase(n, a, false), scaleCase(n, a, true))
			}
		case kernels.ResidualAdd:
			for over := range 3 {
				cases = append(cases, residualCase(n, over))
			}
		}
	}
	return cases
}

func axpyCase(n int, a float32) Case {
	c := Case{name: fmt.Sprintf("n=%d a=%g", n, a), sizes: kernels.Sizes{n}, scalars: kernels.Scalars{a}}
	c.in[0], c.in[1], c.want[1] = random(n, 20), random(n, 21), make([]float64, n)
	for i := range n {
		c.want[1][i] = float64(c.in[1][i]) + float64(a)*float64(c.in[0][i])
	}
	return c
}

func scaleCase(n int, a float32, inPlace bool) Case {
	c := Case{name: fmt.Sprintf("n=%d a=%g in place=%t", n, a, inPlace), sizes: kernels.Sizes{n}, scalars: kernels.Scalars{a}}
	c.in[0], c.in[1], c.want[1] = random(n, 20), nans(n), make([]float64, n)
	for i := range n {
		c.want[1][i] = float64(a) * float64(c.in[0][i])
	}
	if inPlace {
		c.over(1, 0)
	}
	return c
}

// residualCase writes over vector 0 or 1, or with 2 over neither.
func residualCase(n, over int) Case {
	c := Case{name: fmt.Sprintf("n=%d over=%d", n, over), sizes: kernels.Sizes{n}}
	c.in[0], c.in[1], c.in[2], c.want[2] = random(n, 22), random(n, 23), nans(n), make([]float64, n)
	for i := range n {
		c.want[2][i] = max(0, float64(c.in[0][i])+float64(c.in[1][i]))
	}
	if over < 2 {
		c.over(2, over)
	}
	return c
}

// partsCases have no parts, one and many, gaps between the parts, and the sum on the first.
func partsCases() []Case {
	var cases []Case
	for _, s := range []kernels.Sizes{
		{0, 3, 5}, {5, 0, 5}, {1, 1, 1}, {7, 2, 7}, {31, 3, 37}, {257, 17, 257}, {1031, 4, 1040}, {4099, 2, 4099}, {3, 1031, 4},
	} {
		cases = append(cases, partsCase(s, false), partsCase(s, true))
	}
	return cases
}

func partsCase(s kernels.Sizes, inPlace bool) Case {
	n, parts, stride := s[0], s[1], s[2]
	c := Case{name: fmt.Sprintf("n=%d parts=%d stride=%d in place=%t", n, parts, stride, inPlace), sizes: s, terms: parts}
	size := max(n, (parts-1)*stride+n)
	c.in[0], c.in[1], c.want[1] = random(size, 24), nans(n), make([]float64, n)
	for i := range n {
		for p := range parts {
			c.want[1][i] += float64(c.in[0][p*stride+i])
		}
	}
	if inPlace {
		c.over(1, 0)
	}
	return c
}
