package biasrelu

import (
	_ "embed" // bias_relu.ptx

	"fluentps/kernels/kernel"
)

//go:embed bias_relu.ptx
var ptx string

var (
	// BiasReLU: V: X, bias. N: rows, cols. X becomes max(X + bias, 0), bias added to every row.
	BiasReLU = &kernel.Kernel{
		Name: "bias_relu", Tol: 1, Cost: kernel.ElementCost(2, 2, 2),
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1], n[1]} },
		CPU:   func(a kernel.Args) { forward(a.V[0].Host, a.V[1].Host, a.N[0], a.N[1]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 2, Steps: kernel.ElementSteps("bias_relu", 2)},
		Cases: forwardCases,
		Bench: kernel.Bench{Layers: kernel.DenseOutputs},
	}
	// ReLUGrad: V: dX, Y. N: rows, cols. dX becomes 0 wherever Y, the output of BiasReLU, is 0.
	ReLUGrad = &kernel.Kernel{
		Name: "relu_grad", Tol: 0, Cost: kernel.ElementCost(2, 1, 3),
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1], n[0] * n[1]} },
		CPU:   func(a kernel.Args) { backward(a.V[0].Host, a.V[1].Host, a.N[0]*a.N[1]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 2, Steps: kernel.ElementSteps("relu_grad", 2)},
		Cases: backwardCases,
		Bench: kernel.Bench{Layers: kernel.DenseOutputs},
	}
)
