package cpu

import (
	"slices"

	"fluentps/kernels"
	"fluentps/kernels/convolution"
	"fluentps/kernels/gemm"
	"fluentps/kernels/im2col"
)

// Without C code for this processor, a convolution is a product with the matrix of an image's windows. It takes one image
// after the other, so that the matrix stays in the caches.

// matrices are the operands of a convolution other than its filters, for one image.
type matrices struct {
	convolution.Shape
	terms, windows int
	columns        []float32 // terms x windows; nil if isWindowMatrix
}

func (d *device) matrices(n kernels.Sizes) matrices {
	s := convolution.ShapeOf(n)
	m := matrices{Shape: s}
	m.terms, m.windows = s.Columns()
	if !m.isWindowMatrix() {
		d.columns = slices.Grow(d.columns[:0], m.terms*m.windows)[:m.terms*m.windows]
		m.columns = d.columns
	}
	return m
}

// isWindowMatrix reports whether an image is its own matrix of windows.
func (m *matrices) isWindowMatrix() bool { return m.Kernel == 1 && m.Stride == 1 && m.Pad == 0 }

// image and result return image i of the batch x and of the output y.
func (m *matrices) image(x []float32, i int) []float32 {
	n := m.Shape.Shape.Inputs()
	return x[i*n : (i+1)*n]
}

func (m *matrices) result(y []float32, i int) []float32 {
	n := m.Filters * m.windows
	return y[i*n : (i+1)*n]
}

// windowMatrix returns the matrix of windows of image i of x.
func (m *matrices) windowMatrix(x []float32, i int) []float32 {
	if m.isWindowMatrix() {
		return m.image(x, i)
	}
	im2col.Gather(m.columns, m.image(x, i), m.Shape.Shape)
	return m.columns
}

func (d *device) convForward(a kernels.Args) error {
	if d.convolve(kernels.ConvForward, a) {
		return nil
	}
	m := d.matrices(a.N)
	x, w, y := a.V[0].Host, a.V[1].Host, a.V[2].Host
	for i := range m.Images {
		if err := d.product(gemm.NN, m.Filters, m.windows, m.terms, w, m.windowMatrix(x, i), m.result(y, i), nil, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) convBackwardData(a kernels.Args) error {
	if d.convolve(kernels.ConvBackwardData, a) {
		return nil
	}
	m := d.matrices(a.N)
	dy, w, dx, beta := a.V[0].Host, a.V[1].Host, a.V[2].Host, a.F[0]
	for i := range m.Images {
		if m.isWindowMatrix() {
			if err := d.product(gemm.TN, m.terms, m.windows, m.Filters, w, m.result(dy, i), m.image(dx, i), nil, beta); err != nil {
				return err
			}
			continue
		}
		if err := d.product(gemm.TN, m.terms, m.windows, m.Filters, w, m.result(dy, i), m.columns, nil, 0); err != nil {
			return err
		}
		im2col.Scatter(m.image(dx, i), m.columns, beta, m.Shape.Shape)
	}
	return nil
}

func (d *device) convBackwardFilter(a kernels.Args) error {
	if d.convolve(kernels.ConvBackwardFilter, a) {
		return nil
	}
	m := d.matrices(a.N)
	x, dy, dw := a.V[0].Host, a.V[1].Host, a.V[2].Host
	clear(dw[:m.Weights()])
	for i := range m.Images {
		if err := d.product(gemm.NT, m.Filters, m.terms, m.windows, m.result(dy, i), m.windowMatrix(x, i), dw, nil, 1); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) convBackward(a kernels.Args) error {
	x, dy, w, dx, dw := a.V[0], a.V[1], a.V[2], a.V[3], a.V[4]
	a.V = kernels.Vecs{x, dy, dw}
	if err := d.convBackwardFilter(a); err != nil {
		return err
	}
	a.V = kernels.Vecs{dy, w, dx}
	return d.convBackwardData(a)
}
