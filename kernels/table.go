package kernels

import (
	"fluentps/kernels/biasgrad"
	"fluentps/kernels/biasrelu"
	"fluentps/kernels/channelbias"
	"fluentps/kernels/fill"
	"fluentps/kernels/gemm"
	"fluentps/kernels/maxpool"
	"fluentps/kernels/sigmoidxent"
	"fluentps/kernels/softmaxxent"
)

// Matrix products. V: A, B, C, bias (optional, n elements). N: m, n, k. F: beta.
// C (m x n) becomes A·B + beta*C + bias, bias added to every row. With beta 0, C is only written.
var (
	GemmNN = gemmKernel("gemm_nn", gemm.NN) // A is m x k, B is k x n
	GemmNT = gemmKernel("gemm_nt", gemm.NT) // A is m x k, B is n x k
	GemmTN = gemmKernel("gemm_tn", gemm.TN) // A is k x m, B is k x n
)

var (
	// BiasReLU: V: X, bias. N: rows, cols. X becomes max(X + bias, 0), bias added to every row.
	BiasReLU = &Kernel{
		Name: "bias_relu", CUDA: gpuBiasReLU, Tol: 1, Cost: elementwise(2, 2),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1], n[1]} },
		CPU:  func(a Args) { biasrelu.Forward(a.V[0].Host, a.V[1].Host, a.N[0], a.N[1]) },
	}
	// ReLUGrad: V: dX, Y. N: rows, cols. dX becomes 0 wherever Y, the output of BiasReLU, is 0.
	ReLUGrad = &Kernel{
		Name: "relu_grad", CUDA: gpuReLUGrad, Tol: 0, Cost: elementwise(1, 3),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1], n[0] * n[1]} },
		CPU:  func(a Args) { biasrelu.Backward(a.V[0].Host, a.V[1].Host, a.N[0]*a.N[1]) },
	}
	// BiasGrad: V: dY, db. N: rows, cols. db (cols) becomes the column sums of dY.
	BiasGrad = &Kernel{
		Name: "bias_grad", CUDA: gpuBiasGrad, Tol: 8, Cost: elementwise(1, 1),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1], n[1]} },
		CPU:  func(a Args) { biasgrad.Sum(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1]) },
	}
	// SoftmaxXent: V: Z, labels, G (optional), loss, hit. N: rows, cols.
	// Labels are class numbers held as float32, which is exact up to 2^24. G becomes the gradient of
	// the sum of the rows' losses and may be Z itself; loss and hit (rows) become each row's
	// cross-entropy in nats, and 1 where the first of the largest logits is the label, else 0.
	SoftmaxXent = &Kernel{
		Name: "softmax_xent", CUDA: gpuSoftmaxXent, Tol: 8, Cost: elementwise(8, 2), Optional: [8]bool{2: true},
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1], n[0], n[0] * n[1], n[0], n[0]} },
		CPU: func(a Args) {
			softmaxxent.Rows(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0], a.N[1])
		},
	}
	// SigmoidXent: V: Z, labels, G (optional), loss, hit. N: rows. One logit a row, labels 0 or 1;
	// G, loss and hit as for SoftmaxXent. A row counts as 1 when its logit is above 0.
	SigmoidXent = &Kernel{
		Name: "sigmoid_xent", CUDA: gpuSigmoidXent, Tol: 8, Optional: [8]bool{2: true},
		Cost: func(n Sizes) (flops, bytes float64) { return 16 * float64(n[0]), 20 * float64(n[0]) },
		Need: func(n Sizes) [8]int { return [8]int{n[0], n[0], n[0], n[0], n[0]} },
		CPU: func(a Args) {
			sigmoidxent.Rows(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0])
		},
	}
	// Fill: V: X. N: n. F: value. The first n elements of X become value.
	Fill = &Kernel{
		Name: "fill", CUDA: gpuFill, Tol: 0,
		Cost: func(n Sizes) (flops, bytes float64) { return 0, 4 * float64(n[0]) },
		Need: func(n Sizes) [8]int { return [8]int{n[0]} },
		CPU:  func(a Args) { fill.Value(a.V[0].Host[:a.N[0]], a.F[0]) },
	}
)

// Kernels of images, which are planes (channels) of height x width values; in a batch the images
// follow one another (NCHW order).
var (
	// ChannelBiasReLU: V: X, bias. N: images, channels, positions. X becomes max(X + bias, 0), one bias a channel.
	// Its gradient is ReLUGrad.
	ChannelBiasReLU = &Kernel{
		Name: "channel_bias_relu", CUDA: gpuChannelBiasReLU, Tol: 1, Cost: pointwise(2, 2),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1] * n[2], n[1]} },
		CPU:  func(a Args) { channelbias.Forward(a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.N[2]) },
	}
	// ChannelBiasGrad: V: dY, db. N: images, channels, positions. db (channels) becomes the sums of dY over images
	// and positions.
	ChannelBiasGrad = &Kernel{
		Name: "channel_bias_grad", CUDA: gpuChannelBiasGrad, Tol: 8, Cost: pointwise(1, 1),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1] * n[2], n[1]} },
		CPU:  func(a Args) { channelbias.Sum(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
	}
	// MaxPool: V: X, Y, which. N: planes, height, width. Y (planes x height/2 x width/2) becomes the largest value of
	// each 2 x 2 block of X, and which the first of the four that has it, row-major: 0 to 3.
	MaxPool = &Kernel{
		Name: "max_pool", CUDA: gpuMaxPool, Tol: 0, Cost: pointwise(0.75, 1.5),
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[1] * n[2], pooled(n), pooled(n)} },
		CPU:  func(a Args) { maxpool.Forward(a.V[1].Host, a.V[2].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
	}
	// MaxPoolGrad: V: dY, which, dX. N: as MaxPool. dX becomes dY where MaxPool took the value from, else 0.
	MaxPoolGrad = &Kernel{
		Name: "max_pool_grad", CUDA: gpuMaxPoolGrad, Tol: 0, Cost: pointwise(0, 1.5),
		Need: func(n Sizes) [8]int { return [8]int{pooled(n), pooled(n), n[0] * n[1] * n[2]} },
		CPU:  func(a Args) { maxpool.Backward(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.N[2]) },
	}
)

// Table lists every kernel. A device runs all of them.
var Table = []*Kernel{
	GemmNN,
	GemmNT,
	GemmTN,
	BiasReLU,
	ReLUGrad,
	BiasGrad,
	SoftmaxXent,
	SigmoidXent,
	Fill,
	Axpy,
	Scale,
	ResidualAdd,
	SumOfParts,
	SGD,
	Momentum,
	Nesterov,
	Adam,
	LARSRate,
	LARS,
	ToFloat16,
	FromFloat16,
	ToBFloat16,
	FromBFloat16,
	TopK,
	ConvForward,
	ConvBackwardData,
	ConvBackwardFilter,
	ChannelBiasReLU,
	ChannelBiasGrad,
	MaxPool,
	MaxPoolGrad,
	BatchNorm,
	BatchNormEval,
	BatchNormGrad,
	BatchNormRunning,
	GlobalAvgPool,
	GlobalAvgPoolGrad,
	ShortcutPad,
	ShortcutPadGrad,
}

func gemmKernel(name string, op gemm.Op) *Kernel {
	return &Kernel{
		Name: name, CUDA: gpuGemm(name), Tol: 8, Optional: [8]bool{3: true},
		Need: func(n Sizes) [8]int { return [8]int{n[0] * n[2], n[1] * n[2], n[0] * n[1], n[1]} },
		CPU: func(a Args) {
			gemm.Rows(op, 0, a.N[0], a.N[0], a.N[1], a.N[2], a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.F[0])
		},
		Cost: func(n Sizes) (flops, bytes float64) {
			m, c, k := float64(n[0]), float64(n[1]), float64(n[2])
			return 2 * m * c * k, 4 * (m*k + k*c + 2*m*c)
		},
	}
}

// elementwise is the cost of a kernel that does flops operations and moves words float32 for each
// element of a rows x cols matrix.
func elementwise(flops, words float64) func(Sizes) (float64, float64) {
	return func(n Sizes) (float64, float64) {
		size := float64(n[0]) * float64(n[1])
		return flops * size, 4 * words * size
	}
}

// pointwise is elementwise for arrays of three sizes.
func pointwise(flops, words float64) func(Sizes) (float64, float64) {
	return func(n Sizes) (float64, float64) {
		size := float64(n[0]) * float64(n[1]) * float64(n[2])
		return flops * size, 4 * words * size
	}
}

func pooled(n Sizes) int { return n[0] * (n[1] / 2) * (n[2] / 2) }
