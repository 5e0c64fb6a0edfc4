package kerneltest

import (
	"fmt"

	"fluentps/kernels"
)

// convolutionCases have windows of one value, windows larger than the image, padding larger than a window,
// values in no window, no images, the strides that networks use, and layers as they have them.
func convolutionCases(k *kernels.Kernel) []Case {
	var cases []Case
	for _, n := range []kernels.Sizes{
		{1, 1, 1, 1, 1, 1, 1, 0}, {2, 1, 1, 1, 3, 3, 1, 1}, {1, 1, 1, 1, 2, 5, 2, 2}, {2, 3, 5, 7, 4, 1, 1, 0}, {3, 2, 7, 5, 5, 1, 2, 0},
		{1, 1, 7, 11, 7, 3, 1, 0}, {2, 3, 13, 7, 13, 3, 1, 1}, {2, 2, 13, 11, 3, 3, 2, 1}, {1, 2, 8, 8, 17, 3, 2, 0}, {2, 1, 28, 28, 6, 5, 1, 2},
		{2, 6, 14, 14, 16, 5, 1, 0}, {1, 2, 11, 13, 3, 5, 2, 2}, {1, 1, 2, 3, 2, 3, 1, 0}, {1, 1, 2, 3, 2, 2, 1, 4}, {0, 2, 5, 5, 3, 3, 1, 1},
		{1, 2, 9, 10, 3, 2, 3, 0}, {2, 3, 32, 32, 16, 3, 1, 1}, {2, 16, 16, 16, 16, 3, 1, 1}, {3, 16, 16, 16, 32, 3, 2, 1}, {2, 37, 8, 8, 41, 3, 1, 1},
		{5, 16, 9, 9, 19, 1, 1, 0}, {1, 5, 10, 10, 0, 3, 1, 1}, {9, 4, 6, 6, 5, 5, 1, 2}, {2, 32, 8, 8, 64, 3, 2, 1},
		{2, 2, 0, 3, 3, 2, 1, 1}, {2, 2, 3, 3, 3, 5, 1, 0}, {1, 0, 4, 4, 2, 3, 1, 1},
	} {
		cases = append(cases, convolutionCase(k, n, 0))
		if k == kernels.ConvBackwardData {
			cases = append(cases, convolutionCase(k, n, 1), convolutionCase(k, n, -0.5))
		}
	}
	return cases
}

func convolutionCase(k *kernels.Kernel, n kernels.Sizes, beta float32) Case {
	c := Case{
		name:  fmt.Sprintf("images=%d x %dx%dx%d filters=%d kernel=%d stride=%d pad=%d beta=%g", n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], beta),
		sizes: n, scalars: kernels.Scalars{beta},
	}
	channels, height, width, filters, kernel, stride, pad := n[1], n[2], n[3], n[4], n[5], n[6], n[7]
	outputs := func(size int) (count int) {
		for at := -pad; at+kernel <= size+pad; at += stride {
			count++
		}
		return count
	}
	rows, cols := outputs(height), outputs(width)
	inputs, weights, outs := n[0]*channels*height*width, filters*channels*kernel*kernel, n[0]*filters*rows*cols
	x, w, dy := random(inputs, 12), random(weights, 13), random(outs, 18)
	y, dw, dx := make([]float64, outs), make([]float64, weights), make([]float64, inputs)
	for i := range dx {
		dx[i] = float64(beta) * float64(x[i])
	}
	for to := range outs {
		ox, oy := to%cols, to/cols%rows
		f, image := to/(cols*rows)%filters, to/(cols*rows*filters)
		for t := range channels * kernel * kernel {
			ch, iy, ix := t/(kernel*kernel), oy*stride+t/kernel%kernel-pad, ox*stride+t%kernel-pad
			if iy < 0 || iy >= height || ix < 0 || ix >= width {
				continue
			}
			at, weight := ((image*channels+ch)*height+iy)*width+ix, f*channels*kernel*kernel+t
			y[to] += float64(x[at]) * float64(w[weight])
			dw[weight] += float64(dy[to]) * float64(x[at])
			dx[at] += float64(dy[to]) * float64(w[weight])
		}
	}
	switch k {
	case kernels.ConvForward:
		c.in[0], c.in[1], c.in[2], c.want[2], c.terms = x, w, nans(outs), y, channels*kernel*kernel
	case kernels.ConvBackwardData:
		c.in[0], c.in[1], c.in[2], c.want[2], c.terms = dy, w, x, dx, filters*kernel*kernel
		if beta == 0 {
			c.in[2] = nans(inputs)
		}
	case kernels.ConvBackwardFilter:
		c.in[0], c.in[1], c.in[2], c.want[2], c.terms = x, dy, nans(weights), dw, n[0]*rows*cols
	}
	return c
}
