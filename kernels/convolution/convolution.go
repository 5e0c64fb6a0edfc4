// Package convolution holds the kernels conv_forward, conv_backward_data and conv_backward_filter. Their twins follow the
// definition; devices have faster ways.
package convolution

import "fluentps/kernels/im2col"

// Shape describes a convolution of images (channels x height x width) with Filters filters.
type Shape struct {
	im2col.Shape // one image and the windows on it

	Images, Filters int
}

// Inputs, Weights and Outputs return the numbers of values of the batch of images, of the filters
// (filters x channels x kernel x kernel), and of the output (images x filters x rows x columns).
func (s Shape) Inputs() int { return s.Images * s.Shape.Inputs() }

func (s Shape) Weights() int {
	terms, _ := s.Columns()
	return s.Filters * terms
}

func (s Shape) Outputs() int {
	_, windows := s.Columns()
	return s.Images * s.Filters * windows
}

// forward sets y to the products of the filters w with all windows of x.
func forward(y, x, w []float32, s Shape) {
	s.each(func(out int, walk func(visit func(at, weight int))) {
		var sum float32
		walk(func(at, weight int) { sum += x[at] * w[weight] })
		y[out] = sum
	})
}

// backwardData sets dx to beta*dx plus the gradient of x. With beta 0 it does not read dx.
func backwardData(dx, dy, w []float32, beta float32, s Shape) {
	if dx = dx[:s.Inputs()]; beta == 0 {
		clear(dx)
	} else {
		for i := range dx {
			dx[i] *= beta
		}
	}
	s.each(func(out int, walk func(visit func(at, weight int))) {
		g := dy[out]
		walk(func(at, weight int) { dx[at] += g * w[weight] })
	})
}

// backwardFilter sets dw to the gradient of the filters, a sum over images and windows in their order.
func backwardFilter(dw, x, dy []float32, s Shape) {
	clear(dw[:s.Weights()])
	s.each(func(out int, walk func(visit func(at, weight int))) {
		g := dy[out]
		walk(func(at, weight int) { dw[weight] += g * x[at] })
	})
}

// each calls do for every output value. walk visits the pairs of an input and a weight whose products that value
// sums. It skips the parts of a window beyond the edges of the image, which are 0.
func (s Shape) each(do func(out int, walk func(visit func(at, weight int)))) {
	rows, cols := s.Shape.Outputs()
	terms, _ := s.Columns()
	for out := range s.Outputs() {
		ox, oy := out%cols, out/cols%rows
		f, image := out/(cols*rows)%s.Filters, out/(cols*rows*s.Filters)
		do(out, func(visit func(at, weight int)) {
			for c := range s.Channels {
				for ky := range s.Kernel {
					for kx := range s.Kernel {
						y, x := oy*s.Stride+ky-s.Pad, ox*s.Stride+kx-s.Pad
						if y >= 0 && y < s.Height && x >= 0 && x < s.Width {
							visit(((image*s.Channels+c)*s.Height+y)*s.Width+x, f*terms+(c*s.Kernel+ky)*s.Kernel+kx)
						}
					}
				}
			}
		})
	}
}
