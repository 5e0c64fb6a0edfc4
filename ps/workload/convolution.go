package workload

import "fluentps/kernels"

// convolution is the products of a convolution without bias: filters (filters x channels*kernel*kernel)
// over the windows of images in NCHW order. It takes one image after the other, so that the matrix of
// windows stays in the caches and is made once for all.
type convolution struct {
	in, out Image
	sizes   kernels.Sizes // of Im2col
	terms   int           // channels*kernel*kernel: values in a window
	windows int           // positions of a window
	columns kernels.Vec   // terms x windows, of one image; not used where direct
}

func newConvolution(in Image, filters, kernel, stride, pad int) convolution {
	c := convolution{in: in, terms: in.Channels * kernel * kernel}
	c.sizes = kernels.Sizes{in.Channels, in.Height, in.Width, kernel, stride, pad}
	height, width := kernels.Windows(c.sizes)
	c.out, c.windows = Image{Channels: filters, Height: height, Width: width}, height*width
	return c
}

// direct says that an image is its own matrix of windows.
func (c *convolution) direct() bool {
	kernel, stride, pad := c.sizes[3], c.sizes[4], c.sizes[5]
	return kernel == 1 && stride == 1 && pad == 0
}

// allocate makes the scratch; once is as a stage's.
func (c *convolution) allocate(once func(values int) kernels.Vec) {
	if !c.direct() {
		c.columns = once(c.terms * c.windows)
	}
}

// gathered is the matrix of windows of image i of x.
func (c *convolution) gathered(dev kernels.Device, x kernels.Vec, i int) kernels.Vec {
	image := c.in.of(x, i)
	if c.direct() {
		return image
	}
	launch(dev, kernels.Im2col, kernels.Args{V: kernels.Vecs{image, c.columns}, N: c.sizes})
	return c.columns
}

// forward sets the n images y to the filters' products with all windows of x.
func (c *convolution) forward(dev kernels.Device, n int, x, filters, y kernels.Vec) {
	for i := range n {
		columns := c.gathered(dev, x, i)
		launch(dev, kernels.GemmNN, kernels.Args{V: kernels.Vecs{filters, columns, c.out.of(y, i)}, N: kernels.Sizes{c.out.Channels, c.windows, c.terms}})
	}
}

// backwardFilter sets dFilters to the gradient of the filters, summed over the n images in their order.
func (c *convolution) backwardFilter(dev kernels.Device, n int, x, dy, dFilters kernels.Vec) {
	for i := range n {
		columns := c.gathered(dev, x, i)
		a := kernels.Args{V: kernels.Vecs{c.out.of(dy, i), columns, dFilters}, N: kernels.Sizes{c.out.Channels, c.terms, c.windows}}
		if i > 0 {
			a.F[0] = 1
		}
		launch(dev, kernels.GemmNT, a)
	}
}

// backwardData sets the n images dx to the gradient of x.
func (c *convolution) backwardData(dev kernels.Device, n int, dy, filters, dx kernels.Vec) {
	for i := range n {
		image := c.in.of(dx, i)
		columns := c.columns
		if c.direct() {
			columns = image
		}
		launch(dev, kernels.GemmTN, kernels.Args{V: kernels.Vecs{filters, c.out.of(dy, i), columns}, N: kernels.Sizes{c.terms, c.windows, c.out.Channels}})
		if !c.direct() {
			launch(dev, kernels.Col2im, kernels.Args{V: kernels.Vecs{columns, image}, N: c.sizes})
		}
	}
}

// of is image k of a batch.
func (i Image) of(batch kernels.Vec, k int) kernels.Vec {
	return batch.Slice(k*i.values(), (k+1)*i.values())
}
