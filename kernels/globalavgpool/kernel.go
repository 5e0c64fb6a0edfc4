package globalavgpool

import (
	_ "embed" // global_avg_pool.ptx

	"fluentps/kernels/kernel"
)

//go:embed global_avg_pool.ptx
var ptx string

var (
	// GlobalAvgPool: V: X, Y. N: images, channels, positions. Y (images x channels) becomes the mean of each plane of X.
	GlobalAvgPool = &kernel.Kernel{
		Name: "global_avg_pool", Tol: 8, Cost: kernel.ElementCost(3, 1, 1),
		Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1] * n[2], n[0] * n[1]} },
		CPU:  func(a kernel.Args) { forward(a.V[1].Host, a.V[0].Host, a.N[0]*a.N[1], a.N[2]) },
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 2, Sizes: 3,
			Steps: func(n kernel.Sizes) [4]kernel.Step { return kernel.Elements("global_avg_pool", 32*n[0]*n[1]) }, // one warp per plane
		},
		Cases: forwardCases,
		Bench: bench,
	}
	// GlobalAvgPoolGrad: V: dY, dX. N: as GlobalAvgPool. Each value of a plane of dX becomes the plane's dY divided by
	// positions.
	GlobalAvgPoolGrad = &kernel.Kernel{
		Name: "global_avg_pool_grad", Tol: 2, Cost: kernel.ElementCost(3, 0, 1),
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1], n[0] * n[1] * n[2]} },
		CPU:   func(a kernel.Args) { backward(a.V[1].Host, a.V[0].Host, a.N[0]*a.N[1], a.N[2]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 3, Steps: kernel.ElementSteps("global_avg_pool_grad", 3)},
		Cases: backwardCases,
		Bench: bench,
	}
	bench = kernel.Bench{Layers: []kernel.Layer{{Name: "resnet20", N: []int{128, 64, 64}}}}
)
