package maxpool

import (
	_ "embed" // max_pool.ptx

	"fluentps/kernels/kernel"
)

//go:embed max_pool.ptx
var ptx string

var (
	// MaxPool: V: X, Y, which. N: planes, height, width. Y (planes x height/2 x width/2) becomes the largest value of
	// each 2 x 2 block of X, and which (same shape) its row-major index in the block, 0 to 3. Ties go to the first value.
	MaxPool = &kernel.Kernel{
		Name: "max_pool", Tol: 0, Cost: kernel.ElementCost(3, 0.75, 1.5),
		Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1] * n[2], pooled(n), pooled(n)} },
		CPU:  func(a kernel.Args) { forward(a.V[1].Host, a.V[2].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 3, Sizes: 3,
			Steps: func(n kernel.Sizes) [4]kernel.Step { return kernel.Elements("max_pool", pooled(n)) },
		},
		Cases: forwardCases,
		Bench: kernel.Bench{Layers: layers},
	}
	// MaxPoolGrad: V: dY, which, dX. N: as MaxPool. dX becomes dY where MaxPool took the value from, and 0 elsewhere.
	MaxPoolGrad = &kernel.Kernel{
		Name: "max_pool_grad", Tol: 0, Cost: kernel.ElementCost(3, 0, 1.5),
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{pooled(n), pooled(n), n[0] * n[1] * n[2]} },
		CPU:   func(a kernel.Args) { backward(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.N[2]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 3, Sizes: 3, Steps: kernel.ElementSteps("max_pool_grad", 3)},
		Cases: backwardCases,
		Bench: kernel.Bench{Layers: layers, Positive: kernel.Marks{1: true}},
	}
	layers = []kernel.Layer{{Name: "lenet pool1", N: []int{768, 28, 28}}, {Name: "lenet pool2", N: []int{2048, 10, 10}}}
)

func pooled(n kernel.Sizes) int { return n[0] * (n[1] / 2) * (n[2] / 2) }
