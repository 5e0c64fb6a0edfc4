package workload

import "fluentps/kernels"

// convolution is a convolution without bias: the products of filters (filters x channels*kernel*kernel) with the windows of images
// in NCHW order.
type convolution struct {
	in, out Image
	sizes   kernels.Sizes // of ConvForward, without the number of images
	terms   int           // channels*kernel*kernel: values in a window
}

func newConvolution(in Image, filters, kernel, stride, pad int) convolution {
	c := convolution{in: in, terms: in.Channels * kernel * kernel}
	c.sizes = kernels.Sizes{0, in.Channels, in.Height, in.Width, filters, kernel, stride, pad}
	height, width := kernels.Windows(c.sizes)
	c.out = Image{Channels: filters, Height: height, Width: width}
	return c
}

// filters is the shape of the weight.
func (c *convolution) filters() []int {
	kernel := c.sizes[5]
	return []int{c.out.Channels, c.in.Channels, kernel, kernel}
}

func (c *convolution) args(n int, v kernels.Vecs) kernels.Args {
	a := kernels.Args{V: v, N: c.sizes}
	a.N[0] = n
	return a
}

// forward sets the n images y to the products of the filters with all windows of x.
func (c *convolution) forward(dev *stream, n int, x, filters, y kernels.Vec) {
	dev.launch(kernels.ConvForward, c.args(n, kernels.Vecs{x, filters, y}))
}

// backwardFilter sets dFilters to the gradient of the filters, summed over the n images.
func (c *convolution) backwardFilter(dev *stream, n int, x, dy, dFilters kernels.Vec) {
	dev.launch(kernels.ConvBackwardFilter, c.args(n, kernels.Vecs{x, dy, dFilters}))
}

// backward does what backwardFilter does, and sets the n images dx to beta*dx plus the gradient of x.
func (c *convolution) backward(dev *stream, n int, x, dy, filters, dx, dFilters kernels.Vec, beta float32) {
	a := c.args(n, kernels.Vecs{x, dy, filters, dx, dFilters})
	a.F[0] = beta
	dev.launch(kernels.ConvBackward, a)
}
