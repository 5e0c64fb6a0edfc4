package batchnorm

import (
	_ "embed" // batch_norm.ptx

	"fluentps/kernels/kernel"
)

//go:embed batch_norm.ptx
var ptx string

// Images are in NCHW order.
var (
	// BatchNorm: V: X, scale, shift, Y, saved, R (optional). N: images, channels, positions (each at least 1), relu (0 or 1).
	// F: epsilon, above 0.
	// Y becomes scale*(X - mean)*inverse + shift + R, with relu at least 0. mean, variance and
	// inverse = 1/sqrt(variance + epsilon) are those of each channel over images and positions; the variance is divided by
	// the number of values. saved (2 x channels) becomes the means, then the inverses.
	BatchNorm = &kernel.Kernel{
		Name: "batch_norm", Tol: 8, Cost: kernel.ElementCost(3, 8, 3), Optional: kernel.Marks{5: true},
		Need: func(n kernel.Sizes) kernel.Counts {
			size := n[0] * n[1] * n[2]
			return kernel.Counts{size, n[1], n[1], size, 2 * n[1], size}
		},
		CPU: func(a kernel.Args) {
			forward(a.V[3].Host, a.V[4].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[5].Host, shapeOf(a.N), a.F[0])
		},
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 6, Sizes: 4, Scalars: 1, Scratch: scratch,
			Steps: func(n kernel.Sizes) [4]kernel.Step { return steps(n, "batch_norm", "batch_norm_apply") },
		},
		Cases: forwardCases,
		Bench: kernel.Bench{Layers: layers, Scalars: kernel.Scalars{benchEpsilon}},
	}
	// BatchNormEval: V: X, scale, shift, mean, variance, Y, R (optional). N, F: as BatchNorm. Y is computed as in BatchNorm,
	// with mean and variance (channels) in place of the batch's statistics.
	BatchNormEval = &kernel.Kernel{
		Name: "batch_norm_eval", Tol: 8, Cost: kernel.ElementCost(3, 3, 2), Optional: kernel.Marks{6: true},
		Need: func(n kernel.Sizes) kernel.Counts {
			size := n[0] * n[1] * n[2]
			return kernel.Counts{size, n[1], n[1], n[1], n[1], size, size}
		},
		CPU: func(a kernel.Args) {
			eval(a.V[5].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.V[6].Host, shapeOf(a.N), a.F[0])
		},
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 7, Sizes: 4, Scalars: 1,
			Steps: func(n kernel.Sizes) [4]kernel.Step { return steps(n, "batch_norm_eval", "") },
		},
		Cases: evalCases,
		Bench: kernel.Bench{Layers: layers, Scalars: kernel.Scalars{benchEpsilon}, Positive: kernel.Marks{4: true}},
	}
	// BatchNormGrad: V: dY, Y, X, scale, saved, dScale, dShift, dX, mean, variance, next mean, next variance. N: as BatchNorm. F: momentum,
	// epsilon. With relu, dY becomes 0 wherever Y is not above 0. dY is then the gradient of R. dScale, dShift (channels) and dX become the
	// gradients of scale, shift and X. dX may be the memory of X or of dY. next mean and next variance (channels) become
	// images times the running statistics after this batch, (1-momentum)*running + momentum*batch. The batch's variance
	// is divided by the number of its values less 1.
	BatchNormGrad = &kernel.Kernel{
		Name: "batch_norm_grad", Tol: 8, Cost: kernel.ElementCost(3, 10, 7),
		Need: func(n kernel.Sizes) kernel.Counts {
			size := n[0] * n[1] * n[2]
			return kernel.Counts{size, size, size, n[1], 2 * n[1], n[1], n[1], size, n[1], n[1], n[1], n[1]}
		},
		CPU: func(a kernel.Args) {
			backward(a.V[7].Host, a.V[5].Host, a.V[6].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, shapeOf(a.N))
			Running(a)
		},
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 12, Sizes: 4, Scalars: 2, Scratch: scratch,
			Steps: func(n kernel.Sizes) [4]kernel.Step { return steps(n, "batch_norm_grad", "batch_norm_grad_apply") },
		},
		Cases: backwardCases,
		Bench: kernel.Bench{Layers: layers, Scalars: kernel.Scalars{benchMomentum, benchEpsilon}, Positive: kernel.Marks{9: true}},
	}
	layers = []kernel.Layer{
		{Name: "resnet20 group1", N: []int{128, 16, 1024, 1}}, {Name: "resnet20 group2", N: []int{128, 32, 256, 1}},
		{Name: "resnet20 group3", N: []int{128, 64, 64, 1}},
	}
)

const benchEpsilon, benchMomentum = 1e-5, 0.1

// Running computes the running statistics of a launch of BatchNormGrad, for a device that computes the gradients in its own way.
func Running(a kernel.Args) {
	running(a.V[10].Host, a.V[11].Host, a.V[8].Host, a.V[9].Host, a.V[4].Host, shapeOf(a.N), a.F[0], a.F[1])
}

func shapeOf(n kernel.Sizes) shape {
	return shape{Images: n[0], Channels: n[1], Positions: n[2], ReLU: n[3] == 1}
}

// shares returns the number of blocks that share the values of a channel: enough to keep a GPU busy, and so many that
// each thread has at most 16 values, which batch_norm holds in registers.
func shares(n kernel.Sizes) int {
	values := n[0] * n[2]
	return max(kernel.Shares(n[1], values/kernel.GPUThreads), kernel.Blocks(values, 16*kernel.GPUThreads))
}

func scratch(n kernel.Sizes) int {
	y, z := kernel.Fold(shares(n))
	return 2 * n[1] * y * z
}

// steps returns two launches with the same grid. The second launch locates the results of the first one by it.
func steps(n kernel.Sizes, first, second string) (launches [4]kernel.Step) {
	if n[0]*n[1]*n[2] == 0 {
		return launches
	}
	y, z := kernel.Fold(shares(n))
	grid, block := [3]int{n[1], y, z}, [3]int{kernel.GPUThreads, 1, 1}
	launches[0] = kernel.Step{Entry: first, Grid: grid, Block: block}
	launches[1] = kernel.Step{Entry: second, Grid: grid, Block: block}
	return launches
}
