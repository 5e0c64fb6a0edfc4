package convolution

import (
	_ "embed" // conv.ptx, conv_backward.ptx

	"fluentps/kernels/im2col"
	"fluentps/kernels/kernel"
)

var (
	//go:embed conv.ptx
	ptx string
	//go:embed conv_backward.ptx
	backwardPTX string
)

// Convolutions of images in NCHW order with filters (filters x channels x kernel x kernel), without bias.
// N: images, channels, height, width, filters, kernel, stride, pad. kernel and stride are at least 1. Y has
// one value for each filter and each window.
var (
	// ConvForward: V: X, W, Y. Y becomes the products of the filters W with all windows of X.
	ConvForward = &kernel.Kernel{
		Name: "conv_forward", Tol: 8, Cost: cost,
		Need: func(n kernel.Sizes) kernel.Counts { x, w, y := lengths(n); return kernel.Counts{x, w, y} },
		CPU:  func(a kernel.Args) { forward(a.V[2].Host, a.V[0].Host, a.V[1].Host, ShapeOf(a.N)) },
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 3, Sizes: 8,
			Steps: func(n kernel.Sizes) [4]kernel.Step {
				height, width := ShapeOf(n).Shape.Outputs()
				return forwardEntries.steps(n, n[4], height, width)
			},
		},
		Cases: forwardCases,
		Bench: kernel.Bench{Layers: layers},
	}
	// ConvBackwardData: V: dY, W, dX. F: beta. dX becomes beta*dX plus the gradient of X. With beta 0, dX is not read.
	ConvBackwardData = &kernel.Kernel{
		Name: "conv_backward_data", Tol: 8, Cost: cost,
		Need: func(n kernel.Sizes) kernel.Counts { x, w, y := lengths(n); return kernel.Counts{y, w, x} },
		CPU:  func(a kernel.Args) { backwardData(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.F[0], ShapeOf(a.N)) },
		CUDA: &kernel.CUDA{
			PTX: backwardPTX, Vecs: 5, Order: []int{-1, 0, 1, 2, -1}, Sizes: 8, Scalars: 1,
			Scratch: func(kernel.Sizes) int { return 0 },
			Steps:   func(n kernel.Sizes) [4]kernel.Step { return backwardEntries.steps(n, n[1], n[2], n[3]) },
		},
		Cases: backwardDataCases,
		Bench: kernel.Bench{Layers: layers},
	}
	// ConvBackwardFilter: V: X, dY, dW. dW becomes the gradient of the filters, a sum over images and windows.
	ConvBackwardFilter = &kernel.Kernel{
		Name: "conv_backward_filter", Tol: 8, Cost: cost,
		Need: func(n kernel.Sizes) kernel.Counts { x, w, y := lengths(n); return kernel.Counts{x, y, w} },
		CPU:  func(a kernel.Args) { backwardFilter(a.V[2].Host, a.V[0].Host, a.V[1].Host, ShapeOf(a.N)) },
		CUDA: &kernel.CUDA{
			PTX: backwardPTX, Vecs: 5, Order: []int{0, 1, -1, -1, 2}, Sizes: 8, Scalars: 1,
			Scratch: func(n kernel.Sizes) int { _, scratch := filterSteps(n); return scratch },
			Steps:   func(n kernel.Sizes) [4]kernel.Step { steps, _ := filterSteps(n); return steps },
		},
		Cases: backwardFilterCases,
		Bench: kernel.Bench{Layers: layers},
	}
	// ConvBackward: V: X, dY, W, dX, dW. F: beta. It computes what ConvBackwardData and ConvBackwardFilter compute, in fewer launches.
	ConvBackward = &kernel.Kernel{
		Name: "conv_backward", Tol: 8,
		Cost: func(n kernel.Sizes) (flops, bytes float64) { flops, bytes = cost(n); return 2 * flops, 2 * bytes },
		Need: func(n kernel.Sizes) kernel.Counts { x, w, y := lengths(n); return kernel.Counts{x, y, w, x, w} },
		CPU: func(a kernel.Args) {
			backwardFilter(a.V[4].Host, a.V[0].Host, a.V[1].Host, ShapeOf(a.N))
			backwardData(a.V[3].Host, a.V[1].Host, a.V[2].Host, a.F[0], ShapeOf(a.N))
		},
		CUDA: &kernel.CUDA{
			PTX: backwardPTX, Vecs: 5, Sizes: 8, Scalars: 1,
			Scratch: func(n kernel.Sizes) int { _, scratch := filterSteps(n); return scratch },
			Steps:   backwardSteps,
		},
		Cases: backwardCases,
		Bench: kernel.Bench{Layers: layers},
	}
	layers = []kernel.Layer{
		{Name: "lenet conv1", N: []int{128, 1, 28, 28, 6, 5, 1, 2}}, {Name: "lenet conv2", N: []int{128, 6, 14, 14, 16, 5, 1, 0}},
		{Name: "resnet20 conv1", N: []int{128, 3, 32, 32, 16, 3, 1, 1}}, {Name: "resnet20 group1", N: []int{128, 16, 32, 32, 16, 3, 1, 1}},
		{Name: "resnet20 group2 first", N: []int{128, 16, 32, 32, 32, 3, 2, 1}},
		{Name: "resnet20 group2", N: []int{128, 32, 16, 16, 32, 3, 1, 1}},
		{Name: "resnet20 group3 first", N: []int{128, 32, 16, 16, 64, 3, 2, 1}}, {Name: "resnet20 group3", N: []int{128, 64, 8, 8, 64, 3, 1, 1}},
	}
)

// ShapeOf returns the shape that the sizes of a convolution describe.
func ShapeOf(n kernel.Sizes) Shape {
	return Shape{
		Shape:  im2col.Shape{Channels: n[1], Height: n[2], Width: n[3], Kernel: n[5], Stride: n[6], Pad: n[7]},
		Images: n[0], Filters: n[4],
	}
}

func lengths(n kernel.Sizes) (inputs, weights, outputs int) {
	s := ShapeOf(n)
	return s.Inputs(), s.Weights(), s.Outputs()
}

func cost(n kernel.Sizes) (flops, bytes float64) {
	s := ShapeOf(n)
	terms, _ := s.Columns()
	return 2 * float64(s.Outputs()) * float64(terms), 4 * float64(s.Inputs()+s.Weights()+s.Outputs())
}
