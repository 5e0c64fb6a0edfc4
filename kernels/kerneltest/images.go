package kerneltest

import (
	"fmt"

	"fluentps/kernels"
)

func channelCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{{1, 1, 1}, {1, 1, 13}, {7, 1, 1}, {1, 11, 3}, {5, 3, 4}, {32, 6, 196}, {3, 17, 257}, {0, 3, 5}, {101, 2, 103}, {301, 2, 103}} {
		images, channels, positions := n[0], n[1], n[2]
		size := images * channels * positions
		c := Case{name: fmt.Sprintf("images=%d channels=%d positions=%d", images, channels, positions), sizes: n, terms: 1}
		c.in[0] = random(size, 14)
		if k == kernels.ChannelBiasGrad {
			c.in[1], c.want[1], c.terms = nans(channels), make([]float64, channels), images*positions
			for i, v := range c.in[0] {
				c.want[1][i/positions%channels] += float64(v)
			}
		} else {
			c.in[1], c.want[0] = random(channels, 15), make([]float64, size)
			for i, v := range c.in[0] {
				c.want[0][i] = max(0, float64(v)+float64(c.in[1][i/positions%channels]))
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// poolCases have odd sizes, planes without a block, and equal values, of which the first counts.
func poolCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{{1, 1, 1}, {1, 2, 2}, {3, 1, 7}, {2, 7, 1}, {5, 3, 5}, {6, 14, 14}, {16, 10, 10}, {2, 13, 31}, {0, 4, 4}} {
		for _, levels := range []int{0, 3} {
			cases = append(cases, poolCase(k, n, levels))
		}
	}
	return cases
}

// poolCase has values of so many levels; 0: all different.
func poolCase(k *kernels.Kernel, n kernels.Sizes, levels int) Case {
	planes, height, width := n[0], n[1], n[2]
	outH, outW := height/2, width/2
	c := Case{name: fmt.Sprintf("planes=%d height=%d width=%d levels=%d", planes, height, width, levels), sizes: n, terms: 1}
	x := random(planes*height*width, 16)
	if levels > 0 {
		for i, v := range x {
			x[i] = float32(int(v * float32(levels)))
		}
	}
	outs := planes * outH * outW
	dy, which := random(outs, 17), make([]float32, outs)
	largest, dx := make([]float64, outs), make([]float64, len(x))
	for o := range outs {
		p, i, j := o/(outH*outW), o/outW%outH, o%outW
		at := (p*height+2*i)*width + 2*j
		from := at
		for k, other := range []int{at, at + 1, at + width, at + width + 1} {
			if x[other] > x[from] {
				from, which[o] = other, float32(k)
			}
		}
		largest[o], dx[from] = float64(x[from]), float64(dy[o])
	}
	if k == kernels.MaxPoolGrad {
		c.in[0], c.in[1], c.in[2], c.want[2] = dy, which, nans(len(x)), dx
		return c
	}
	c.in[0], c.in[1], c.in[2] = x, nans(outs), nans(outs)
	c.want[1], c.want[2] = largest, make([]float64, outs)
	for o, w := range which {
		c.want[2][o] = float64(w)
	}
	return c
}
