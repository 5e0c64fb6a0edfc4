package topk

import (
	"fmt"
	"math"
	"slices"

	"fluentps/kernels/kernel"
)

// cases send none, one, some and all elements, of distinct values and of few levels, with and without a residual. Their
// thresholds choose fewer elements than k, and more.
func cases() (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for _, k := range []int{0, 1, n/100 + 1, n, n + 3} {
			for _, threshold := range []float32{-1, 0, 0.9} {
				residual := (n+k)%2 == 0
				cases = append(cases, topCase(n, k, threshold, 0, residual), topCase(n, k, threshold, 3, !residual))
			}
		}
	}
	for _, threshold := range []float32{-1, 0.9, 0.999} {
		cases = append(cases, topCase(50_021, 501, threshold, 0, true), topCase(50_021, 501, threshold, 3, false))
	}
	special := topCase(257, 5, -1, 0, false)
	for i, b := range []uint32{0x7f800000, 0xff800000, 0x7fc00001, 0xffc00000, 0x7f7fffff, 1} {
		special.In[0][40*i] = math.Float32frombits(b)
	}
	special.Name += " with values that are not finite"
	choose(&special)
	return append(cases, special)
}

// topCase has values with this many levels; 0: all values differ.
func topCase(n, k int, threshold float32, levels int, residual bool) kernel.Case {
	c := kernel.Case{
		Name:  fmt.Sprintf("n=%d k=%d threshold=%g levels=%d residual=%t", n, k, threshold, levels, residual),
		Sizes: kernel.Sizes{n, k}, Scalars: kernel.Scalars{threshold},
	}
	c.In[0], c.In[2] = kernel.Random(n, 41), kernel.Random(1+2*k, 42)
	if levels > 0 {
		for i, x := range c.In[0] {
			c.In[0][i] = float32(int(x*float32(levels))) / 2
		}
	}
	if residual {
		c.In[1] = kernel.Random(n, 43)
	}
	choose(&c)
	return c
}

// choose sorts all elements to find the results of top_k.
func choose(c *kernel.Case) {
	n, k, threshold := c.Sizes[0], c.Sizes[1], c.Scalars[0]
	v, order := make([]uint32, n), make([]int, n)
	for i, x := range c.In[0] {
		if c.In[1] != nil {
			x = float32(float64(x) + float64(c.In[1][i])) // the same as the sum in float32: a float64 has enough digits
		}
		v[i], order[i] = math.Float32bits(x), i
	}
	magnitude := func(i int) uint32 { return v[i] &^ (1 << 31) }
	slices.SortStableFunc(order, func(i, j int) int { return int(magnitude(j)) - int(magnitude(i)) })
	chosen := order[:min(k, n)]
	if threshold >= 0 {
		for len(chosen) > 0 && magnitude(chosen[len(chosen)-1]) <= math.Float32bits(threshold) {
			chosen = chosen[:len(chosen)-1]
		}
	}
	slices.Sort(chosen)
	sent := make([]uint32, len(c.In[2]))
	for i, x := range c.In[2] {
		sent[i] = math.Float32bits(x)
	}
	sent[0] = uint32(len(chosen))
	for p, i := range chosen {
		sent[1+2*p], sent[2+2*p] = uint32(i), v[i]
		v[i] = 0
	}
	c.Bits[2] = sent
	if c.In[1] != nil {
		c.Bits[1] = v
	}
}
