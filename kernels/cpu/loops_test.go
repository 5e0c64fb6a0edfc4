package cpu_test

import (
	"testing"

	"fluentps/kernels"
)

// The kernels other than convolutions and products in ResNet-20, LeNet and an MLP, at batch 64.
func BenchmarkLoops(b *testing.B) {
	for _, c := range []struct {
		k *kernels.Kernel
		n kernels.Sizes
	}{
		{kernels.BatchNorm, kernels.Sizes{64, 16, 1024, 1}},
		{kernels.BatchNormEval, kernels.Sizes{64, 16, 1024, 1}},
		{kernels.BatchNormGrad, kernels.Sizes{64, 16, 1024, 1}},
		{kernels.BatchNorm, kernels.Sizes{64, 64, 64, 1}},
		{kernels.BatchNormGrad, kernels.Sizes{64, 64, 64, 1}},
		{kernels.GlobalAvgPool, kernels.Sizes{64, 64, 64}},
		{kernels.GlobalAvgPoolGrad, kernels.Sizes{64, 64, 64}},
		{kernels.ShortcutPad, kernels.Sizes{64, 16, 32, 32, 32}},
		{kernels.ShortcutPadGrad, kernels.Sizes{64, 16, 32, 32, 32}},
		{kernels.BiasReLU, kernels.Sizes{64, 256}},
		{kernels.ReLUGrad, kernels.Sizes{64, 256}},
		{kernels.BiasGrad, kernels.Sizes{64, 256}},
		{kernels.BiasGrad, kernels.Sizes{64, 10}},
		{kernels.ChannelBiasReLU, kernels.Sizes{64, 6, 196}},
		{kernels.ChannelBiasGrad, kernels.Sizes{64, 6, 196}},
		{kernels.MaxPool, kernels.Sizes{384, 28, 28}},
		{kernels.MaxPoolGrad, kernels.Sizes{384, 28, 28}},
		{kernels.MaxPool, kernels.Sizes{1024, 10, 10}},
		{kernels.MaxPoolGrad, kernels.Sizes{1024, 10, 10}},
		{kernels.SoftmaxXent, kernels.Sizes{64, 10}},
		{kernels.Axpy, kernels.Sizes{1 << 18}},
		{kernels.Fill, kernels.Sizes{1 << 18}},
	} {
		b.Run(c.k.Name+"/"+sizes(c.n), func(b *testing.B) { launches(b, c.k, kernels.Args{N: c.n, F: kernels.Scalars{1e-5}}) })
	}
}
