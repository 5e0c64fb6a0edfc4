package kerneltest

import (
	"fmt"

	"fluentps/kernels"
)

// windowCases have windows of one value, windows larger than the image, padding larger than a
// window, values in no window, and all strides that networks use.
func windowCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{
		{1, 1, 1, 1, 1, 0}, {1, 1, 1, 3, 1, 1}, {1, 1, 1, 5, 2, 2}, {3, 5, 7, 1, 1, 0}, {2, 7, 5, 1, 2, 0},
		{1, 7, 11, 3, 1, 0}, {3, 13, 7, 3, 1, 1}, {2, 13, 11, 3, 2, 1}, {2, 8, 8, 3, 2, 0}, {1, 28, 28, 5, 1, 2},
		{6, 14, 14, 5, 1, 0}, {2, 11, 13, 5, 2, 2}, {1, 2, 3, 3, 1, 0}, {1, 2, 3, 2, 1, 4}, {0, 5, 5, 3, 1, 1}, {2, 9, 10, 2, 3, 0},
	} {
		cases = append(cases, windowCase(k, n))
	}
	return cases
}

func windowCase(k *kernels.Kernel, n kernels.Sizes) Case {
	channels, height, width, kernel, stride, pad := n[0], n[1], n[2], n[3], n[4], n[5]
	c := Case{
		name:  fmt.Sprintf("image=%dx%dx%d kernel=%d stride=%d pad=%d", channels, height, width, kernel, stride, pad),
		sizes: n, terms: kernel * kernel,
	}
	outputs := func(size int) (count int) {
		for at := -pad; at+kernel <= size+pad; at += stride {
			count++
		}
		return count
	}
	outH, outW := outputs(height), outputs(width)
	image, columns := channels*height*width, channels*kernel*kernel*outH*outW
	want := make([]float64, columns)
	if k == kernels.Col2im {
		want = make([]float64, image)
		c.in[0], c.in[1] = random(columns, 12), nans(image)
	} else {
		c.in[0], c.in[1] = random(image, 13), nans(columns)
	}
	for to := range columns {
		ox, oy := to%outW, to/outW%outH
		kx, ky := to/(outW*outH)%kernel, to/(outW*outH*kernel)%kernel
		y, x := oy*stride+ky-pad, ox*stride+kx-pad
		if y < 0 || y >= height || x < 0 || x >= width {
			continue
		}
		from := (to/(outW*outH*kernel*kernel)*height+y)*width + x
		if k == kernels.Col2im {
			want[from] += float64(c.in[0][to])
		} else {
			want[to] = float64(c.in[0][from])
		}
	}
	c.want[1] = want
	return c
}

func channelCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{{1, 1, 1}, {1, 1, 13}, {7, 1, 1}, {1, 11, 3}, {5, 3, 4}, {32, 6, 196}, {3, 17, 257}, {0, 3, 5}, {101, 2, 103}} {
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
