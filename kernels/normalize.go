package kernels

import (
	"fluentps/kernels/batchnorm"
	"fluentps/kernels/globalavgpool"
	"fluentps/kernels/shortcutpad"
)

// Kernels of residual networks, for images in NCHW order.
var (
	// BatchNorm: V: X, scale, shift, Y, saved, R (optional). N: images, channels, positions (each at least 1), relu (0 or 1).
	// F: epsilon, above 0.
	// Y becomes scale*(X - mean)*inverse + shift + R, and with relu at least 0. mean and inverse = 1/sqrt(variance + epsilon)
	// are of each channel over images and positions, the variance divided by their number; saved (2 x channels) becomes the
	// means, then the inverses.
	BatchNorm = &Kernel{
		Name: "batch_norm", CUDA: gpuBatchNorm, Tol: 8, Cost: pointwise(8, 3), Optional: [8]bool{5: true},
		Need: func(n Sizes) [8]int {
			size := n[0] * n[1] * n[2]
			return [8]int{size, n[1], n[1], size, 2 * n[1], size}
		},
		CPU: func(a Args) {
			batchnorm.Forward(a.V[3].Host, a.V[4].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[5].Host, normShape(a.N), a.F[0])
		},
	}
	// BatchNormEval: V: X, scale, shift, mean, variance, Y, R (optional). N, F: as BatchNorm. Y becomes what BatchNorm makes
	// of X, with these statistics (channels) in place of the batch's.
	BatchNormEval = &Kernel{
		Name: "batch_norm_eval", CUDA: gpuBatchNormEval, Tol: 8, Cost: pointwise(3, 2), Optional: [8]bool{6: true},
		Need: func(n Sizes) [8]int {
			size := n[0] * n[1] * n[2]
			return [8]int{size, n[1], n[1], n[1], n[1], size, size}
		},
		CPU: func(a Args) {
			batchnorm.Eval(a.V[5].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.V[6].Host, normShape(a.N), a.F[0])
		},
	}
	// BatchNormGrad: V: dY, Y, X, scale, saved, dScale, dShift, dX. N: as BatchNorm. With relu, dY becomes 0 wherever Y is
	// not above 0: then it is the gradient of R. dScale, dShift (channels) and dX become the gradients of scale, shift and X.
	// dX may be the memory of X or of dY.
	BatchNormGrad = &Kernel{
		Name: "batch_norm_grad", CUDA: gpuBatchNormGrad, Tol: 8, Cost: pointwise(10, 7),
		Need: func(n Sizes) [8]int {
			size := n[0] * n[1] * n[2]
			return [8]int{size, size, size, n[1], 2 * n[1], n[1], n[1], size}
		},
		CPU: func(a Args) {
			batchnorm.Backward(a.V[7].Host, a.V[5].Host, a.V[6].Host, a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, normShape(a.N))
		},
	}
	// BatchNormRunning: V: saved, mean, variance, next mean, next variance. N: images, channels, positions. F: momentum,
	// epsilon. The next (channels) become images times the running statistics after this batch:
	// (1-momentum)*running + momentum*batch, the batch's variance divided by one less than the number of its values.
	BatchNormRunning = &Kernel{
		Name: "batch_norm_running", CUDA: gpuBatchNormRunning, Tol: 8,
		Cost: func(n Sizes) (flops, bytes float64) { return 14 * float64(n[1]), 24 * float64(n[1]) },
		Need: func(n Sizes) [8]int { return [8]int{2 * n[1], n[1], n[1], n[1], n[1]} },
		CPU: func(a Args) {
			batchnorm.Running(a.V[3].Host, a.V[4].Host, a.V[1].Host, a.V[2].Host, a.V[0].Host, normShape(a.N), a.F[0], a.F[1])
		},
	}
	// GlobalAvgPool: V: X, Y. N: images, channels, positions. Y (images x channels) becomes the mean of each plane of X.
	GlobalAvgPool = &Kernel{
		Name: "global_avg_pool", CUDA: gpuGlobalAvgPool, Tol: 8, Cost: pointwise(1, 1),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1] * n[2], n[0] * n[1]} },
		CPU:  func(a Args) { globalavgpool.Forward(a.V[1].Host, a.V[0].Host, a.N[0]*a.N[1], a.N[2]) },
	}
	// GlobalAvgPoolGrad: V: dY, dX. N: as GlobalAvgPool. Each plane of dX becomes its value of dY over positions.
	GlobalAvgPoolGrad = &Kernel{
		Name: "global_avg_pool_grad", CUDA: gpuGlobalAvgPoolGrad, Tol: 2, Cost: pointwise(0, 1),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1], n[0] * n[1] * n[2]} },
		CPU:  func(a Args) { globalavgpool.Backward(a.V[1].Host, a.V[0].Host, a.N[0]*a.N[1], a.N[2]) },
	}
	// ShortcutPad: V: X, Y. N: images, channels, height, width, channels out. Y (images x channels out x (height+1)/2 x
	// (width+1)/2) becomes every second row and column of X, from the first on; the channels that X lacks become 0: option A
	// of He et al. (CVPR 2016), section 4.1.
	ShortcutPad = &Kernel{
		Name: "shortcut_pad", CUDA: gpuShortcutPad, Tol: 0, Cost: padCost,
		Need: func(n Sizes) [8]int { return [8]int{padShape(n).Inputs(), padShape(n).Outputs()} },
		CPU:  func(a Args) { shortcutpad.Forward(a.V[1].Host, a.V[0].Host, padShape(a.N)) },
	}
	// ShortcutPadGrad: V: dY, dX. N: as ShortcutPad. dY is added to dX where ShortcutPad took its values from.
	ShortcutPadGrad = &Kernel{
		Name: "shortcut_pad_grad", CUDA: gpuShortcutPadGrad, Tol: 1, Cost: padCost,
		Need: func(n Sizes) [8]int { return [8]int{padShape(n).Outputs(), padShape(n).Inputs()} },
		CPU:  func(a Args) { shortcutpad.Backward(a.V[1].Host, a.V[0].Host, padShape(a.N)) },
	}
)

func normShape(n Sizes) batchnorm.Shape {
	return batchnorm.Shape{Images: n[0], Channels: n[1], Positions: n[2], ReLU: n[3] == 1}
}

func padShape(n Sizes) shortcutpad.Shape {
	return shortcutpad.Shape{Images: n[0], Channels: n[1], Height: n[2], Width: n[3], Out: n[4]}
}

func padCost(n Sizes) (flops, bytes float64) {
	s := padShape(n)
	return 0, float64(4 * (s.Inputs()/2 + s.Outputs()))
}
