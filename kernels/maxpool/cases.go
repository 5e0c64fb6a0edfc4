package maxpool

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func forwardCases() []kernel.Case {
	return planes(func(c *kernel.Case, r reference) {
		c.In[0], c.In[1], c.In[2] = r.x, kernel.NaNs(len(r.y)), kernel.NaNs(len(r.y))
		c.Want[1], c.Want[2] = r.y, kernel.Float64s(r.which)
	})
}

func backwardCases() []kernel.Case {
	return planes(func(c *kernel.Case, r reference) {
		c.In[0], c.In[1], c.In[2], c.Want[2] = r.dy, r.which, kernel.NaNs(len(r.x)), r.dx
	})
}

// reference is max pooling and its gradient in float64.
type reference struct {
	x, which, dy []float32
	y, dx        []float64
}

// planes include odd sizes, planes without a block, and blocks with equal values, of which the first counts.
func planes(complete func(c *kernel.Case, r reference)) (cases []kernel.Case) {
	for _, n := range []kernel.Sizes{{1, 1, 1}, {1, 2, 2}, {3, 1, 7}, {2, 7, 1}, {5, 3, 5}, {6, 14, 14}, {16, 10, 10},
		{2, 13, 31}, {0, 4, 4}} {
		for _, levels := range []int{0, 3} {
			c := kernel.Case{Name: fmt.Sprintf("planes=%d height=%d width=%d levels=%d", n[0], n[1], n[2], levels), Sizes: n, Terms: 1}
			complete(&c, pool(n, levels))
			cases = append(cases, c)
		}
	}
	return cases
}

// pool computes max pooling of values with this many levels; 0: all values differ.
func pool(n kernel.Sizes, levels int) reference {
	planes, height, width := n[0], n[1], n[2]
	outH, outW := height/2, width/2
	x := kernel.Random(planes*height*width, 16)
	if levels > 0 {
		for i, v := range x {
			x[i] = float32(int(v * float32(levels)))
		}
	}
	outs := planes * outH * outW
	r := reference{x: x, which: make([]float32, outs), dy: kernel.Random(outs, 17), y: make([]float64, outs), dx: make([]float64, len(x))}
	for o := range outs {
		p, i, j := o/(outH*outW), o/outW%outH, o%outW
		at := (p*height+2*i)*width + 2*j
		from := at
		for k, other := range []int{at, at + 1, at + width, at + width + 1} {
			if x[other] > x[from] {
				from, r.which[o] = other, float32(k)
			}
		}
		r.y[o], r.dx[from] = float64(x[from]), float64(r.dy[o])
	}
	return r
}
