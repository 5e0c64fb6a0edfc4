package convolution

import (
	"fmt"

	"fluentps/kernels/kernel"
)

// shapes include windows of one value, windows larger than the image, padding larger than a window,
// values outside all windows, no images, and the strides and layers of real networks.
var shapes = []kernel.Sizes{
	{1, 1, 1, 1, 1, 1, 1, 0}, {2, 1, 1, 1, 3, 3, 1, 1}, {1, 1, 1, 1, 2, 5, 2, 2}, {2, 3, 5, 7, 4, 1, 1, 0}, {3, 2, 7, 5, 5, 1, 2, 0},
	{1, 1, 7, 11, 7, 3, 1, 0}, {2, 3, 13, 7, 13, 3, 1, 1}, {2, 2, 13, 11, 3, 3, 2, 1}, {1, 2, 8, 8, 17, 3, 2, 0}, {2, 1, 28, 28, 6, 5, 1, 2},
	{2, 6, 14, 14, 16, 5, 1, 0}, {1, 2, 11, 13, 3, 5, 2, 2}, {1, 1, 2, 3, 2, 3, 1, 0}, {1, 1, 2, 3, 2, 2, 1, 4}, {0, 2, 5, 5, 3, 3, 1, 1},
	{1, 2, 9, 10, 3, 2, 3, 0}, {2, 3, 32, 32, 16, 3, 1, 1}, {2, 16, 16, 16, 16, 3, 1, 1}, {3, 16, 16, 16, 32, 3, 2, 1},
	{2, 37, 8, 8, 41, 3, 1, 1},
	{5, 16, 9, 9, 19, 1, 1, 0}, {1, 5, 10, 10, 0, 3, 1, 1}, {9, 4, 6, 6, 5, 5, 1, 2}, {2, 32, 8, 8, 64, 3, 2, 1},
	{1, 17, 33, 35, 6, 3, 2, 1}, {2, 3, 16, 16, 9, 3, 2, 1},
	{2, 2, 0, 3, 3, 2, 1, 1}, {2, 2, 3, 3, 3, 5, 1, 0}, {1, 0, 4, 4, 2, 3, 1, 1},
}

func forwardCases() (cases []kernel.Case) {
	for _, n := range shapes {
		c, r := start(n, 0)
		c.In[0], c.In[1], c.In[2], c.Want[2], c.Terms = r.x, r.w, kernel.NaNs(len(r.y)), r.y, n[1]*n[5]*n[5]
		cases = append(cases, c)
	}
	return cases
}

func backwardDataCases() (cases []kernel.Case) {
	for _, n := range shapes {
		for _, beta := range []float32{0, 1, -0.5} {
			c, r := start(n, beta)
			c.In[0], c.In[1], c.In[2], c.Want[2], c.Terms = r.dy, r.w, r.x, r.dx, n[4]*n[5]*n[5]
			if beta == 0 {
				c.In[2] = kernel.NaNs(len(r.x))
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func backwardFilterCases() (cases []kernel.Case) {
	for _, n := range shapes {
		c, r := start(n, 0)
		c.In[0], c.In[1], c.In[2], c.Want[2], c.Terms = r.x, r.dy, kernel.NaNs(len(r.w)), r.dw, r.positions
		cases = append(cases, c)
	}
	return cases
}

// backwardCases are both gradients in one launch.
func backwardCases() (cases []kernel.Case) {
	for _, n := range shapes {
		for _, beta := range []float32{0, 1} {
			c, r := start(n, beta)
			c.In[0], c.In[1], c.In[2], c.In[3], c.In[4] = r.x, r.dy, r.w, kernel.Random(len(r.x), 12), kernel.NaNs(len(r.w))
			c.Want[3], c.Want[4], c.Terms = r.dx, r.dw, max(n[4]*n[5]*n[5], r.positions)
			if beta == 0 {
				c.In[3] = kernel.NaNs(len(r.x))
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// reference is a convolution and its gradients in float64, for images x, filters w and gradients dy.
type reference struct {
	x, w, dy  []float32
	y, dw, dx []float64 // dx includes beta times x
	positions int       // windows on all images
}

func start(n kernel.Sizes, beta float32) (kernel.Case, reference) {
	c := kernel.Case{
		Name: fmt.Sprintf("images=%d x %dx%dx%d filters=%d kernel=%d stride=%d pad=%d beta=%g", n[0], n[1], n[2], n[3],
			n[4], n[5], n[6], n[7], beta),
		Sizes: n, Scalars: kernel.Scalars{beta},
	}
	channels, height, width, filters, side, stride, pad := n[1], n[2], n[3], n[4], n[5], n[6], n[7]
	outputs := func(size int) (count int) {
		for at := -pad; at+side <= size+pad; at += stride {
			count++
		}
		return count
	}
	rows, cols := outputs(height), outputs(width)
	inputs, weights, outs := n[0]*channels*height*width, filters*channels*side*side, n[0]*filters*rows*cols
	r := reference{
		x: kernel.Random(inputs, 12), w: kernel.Random(weights, 13), dy: kernel.Random(outs, 18),
		y: make([]float64, outs), dw: make([]float64, weights), dx: make([]float64, inputs), positions: n[0] * rows * cols,
	}
	for i := range r.dx {
		r.dx[i] = float64(beta) * float64(r.x[i])
	}
	for to := range outs {
		ox, oy := to%cols, to/cols%rows
		f, image := to/(cols*rows)%filters, to/(cols*rows*filters)
		for t := range channels * side * side {
			ch, iy, ix := t/(side*side), oy*stride+t/side%side-pad, ox*stride+t%side-pad
			if iy < 0 || iy >= height || ix < 0 || ix >= width {
				continue
			}
			at, weight := ((image*channels+ch)*height+iy)*width+ix, f*channels*side*side+t
			r.y[to] += float64(r.x[at]) * float64(r.w[weight])
			r.dw[weight] += float64(r.dy[to]) * float64(r.x[at])
			r.dx[at] += float64(r.dy[to]) * float64(r.w[weight])
		}
	}
	return c, r
}
