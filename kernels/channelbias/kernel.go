package channelbias

import (
	_ "embed" // channel_bias.ptx

	"fluentps/kernels/kernel"
)

//go:embed channel_bias.ptx
var ptx string

// Images are in NCHW order: one after the other, each with one plane of positions per channel.
var (
	// ChannelBiasReLU: V: X, bias. N: images, channels, positions. X becomes max(X + bias, 0), one bias a channel.
	// Its gradient is ReLUGrad.
	ChannelBiasReLU = &kernel.Kernel{
		Name: "channel_bias_relu", Tol: 1, Cost: kernel.ElementCost(3, 2, 2),
		Need:  need,
		CPU:   func(a kernel.Args) { forward(a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.N[2]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 3, Steps: kernel.ElementSteps("channel_bias_relu", 3)},
		Cases: forwardCases,
		Bench: bench,
	}
	// ChannelBiasGrad: V: dY, db. N: images, channels, positions. db (channels) becomes the sums of dY over images
	// and positions.
	ChannelBiasGrad = &kernel.Kernel{
		Name: "channel_bias_grad", Tol: 8, Cost: kernel.ElementCost(3, 1, 1),
		Need: need,
		CPU:  func(a kernel.Args) { gradient(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 2, Sizes: 3,
			Scratch: func(n kernel.Sizes) int { return kernel.ShareScratch(shares(n), n[1]) },
			Steps: func(n kernel.Sizes) [4]kernel.Step {
				return kernel.SplitReduction("channel_bias_grad", "channel_bias_grad_sum", n[1], shares(n), n[1])
			},
		},
		Cases: gradientCases,
		Bench: bench,
	}
	bench = kernel.Bench{Layers: []kernel.Layer{{Name: "lenet conv1", N: []int{128, 6, 784}}, {Name: "lenet conv2", N: []int{128, 16, 100}}}}
)

func need(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1] * n[2], n[1]} }

// shares gives each thread at least 32 values of a channel, because fewer take less time than a second launch.
func shares(n kernel.Sizes) int { return kernel.Shares(n[1], n[0]*n[2]/(32*kernel.GPUThreads)) }
