package kernels

import (
	"fluentps/kernels/convolution"
	"fluentps/kernels/im2col"
)

// Convolutions of images in NCHW order with filters (filters x channels x kernel x kernel), without bias.
// N: images, channels, height, width, filters, kernel, stride, pad; kernel and stride at least 1. Y has
// a value for each filter and each window, which Windows counts.
var (
	// ConvForward: V: X, W, Y. Y becomes the products of the filters W with all windows of X.
	ConvForward = &Kernel{
		Name: "conv_forward", CUDA: gpuConvForward, Tol: 8, Cost: convolutionCost,
		Need: func(n Sizes) [8]int { x, w, y := convolved(n); return [8]int{x, w, y} },
		CPU:  func(a Args) { convolution.Forward(a.V[2].Host, a.V[0].Host, a.V[1].Host, Convolution(a.N)) },
	}
	// ConvBackwardData: V: dY, W, dX. F: beta. dX becomes beta*dX plus the gradient of X; with beta 0 it is only written.
	ConvBackwardData = &Kernel{
		Name: "conv_backward_data", CUDA: gpuConvBackwardData, Tol: 8, Cost: convolutionCost,
		Need: func(n Sizes) [8]int { x, w, y := convolved(n); return [8]int{y, w, x} },
		CPU: func(a Args) {
			convolution.BackwardData(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.F[0], Convolution(a.N))
		},
	}
	// ConvBackwardFilter: V: X, dY, dW. dW becomes the gradient of the filters, summed over images and windows.
	ConvBackwardFilter = &Kernel{
		Name: "conv_backward_filter", CUDA: gpuConvBackwardFilter, Tol: 8, Cost: convolutionCost,
		Need: func(n Sizes) [8]int { x, w, y := convolved(n); return [8]int{x, y, w} },
		CPU:  func(a Args) { convolution.BackwardFilter(a.V[2].Host, a.V[0].Host, a.V[1].Host, Convolution(a.N)) },
	}
)

// Convolution reads the sizes of a convolution.
func Convolution(n Sizes) convolution.Shape {
	return convolution.Shape{
		Shape:  im2col.Shape{Channels: n[1], Height: n[2], Width: n[3], Kernel: n[5], Stride: n[6], Pad: n[7]},
		Images: n[0], Filters: n[4],
	}
}

// Windows is how many windows of a convolution with these sizes lie below and beside one another.
func Windows(n Sizes) (height, width int) {
	s := Convolution(n)
	return s.Shape.Outputs()
}

func convolved(n Sizes) (inputs, weights, outputs int) {
	s := Convolution(n)
	return s.Inputs(), s.Weights(), s.Outputs()
}

func convolutionCost(n Sizes) (flops, bytes float64) {
	s := Convolution(n)
	terms, _ := s.Columns()
	return 2 * float64(s.Outputs()) * float64(terms), 4 * float64(s.Inputs()+s.Weights()+s.Outputs())
}
