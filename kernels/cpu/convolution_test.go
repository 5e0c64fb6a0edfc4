package cpu_test

import (
	"testing"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// The layers of CIFAR ResNets and of LeNet at batch 32.
func BenchmarkConvolution(b *testing.B) {
	for _, c := range []struct {
		name string
		n    kernels.Sizes
	}{
		{"resnet_3x32x32_to_16", kernels.Sizes{32, 3, 32, 32, 16, 3, 1, 1}},
		{"resnet_16x32x32_to_16", kernels.Sizes{32, 16, 32, 32, 16, 3, 1, 1}},
		{"resnet_16x32x32_to_32_stride_2", kernels.Sizes{32, 16, 32, 32, 32, 3, 2, 1}},
		{"resnet_32x16x16_to_32", kernels.Sizes{32, 32, 16, 16, 32, 3, 1, 1}},
		{"resnet_32x16x16_to_64_stride_2", kernels.Sizes{32, 32, 16, 16, 64, 3, 2, 1}},
		{"resnet_64x8x8_to_64", kernels.Sizes{32, 64, 8, 8, 64, 3, 1, 1}},
		{"lenet_1x28x28_to_6", kernels.Sizes{32, 1, 28, 28, 6, 5, 1, 2}},
		{"lenet_6x14x14_to_16", kernels.Sizes{32, 6, 14, 14, 16, 5, 1, 0}},
		{"64x16x16_to_64_kernel_1", kernels.Sizes{32, 64, 16, 16, 64, 1, 1, 0}},
	} {
		for _, k := range []*kernels.Kernel{kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter} {
			b.Run(c.name+"/"+k.Name, func(b *testing.B) { launches(b, k, kernels.Args{N: c.n}) })
		}
	}
}

// launches times a kernel on one thread. It reports the rates of the fastest launch, which other programs disturbed least.
func launches(b *testing.B, k *kernels.Kernel, a kernels.Args) {
	dev := cpu.New(1)
	for i, need := range k.Need(a.N) {
		a.V[i] = kernels.Vec{Host: make([]float32, need)}
		for j := range a.V[i].Host {
			a.V[i].Host[j] = float32(j % 4) // also valid as labels, and as the indices of largest values
		}
	}
	b.ReportAllocs()
	fastest := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := dev.Launch(k, a); err != nil {
			b.Fatal(err)
		}
		fastest = min(fastest, time.Since(start))
	}
	flops, bytes := k.Cost(a.N)
	b.ReportMetric(flops/float64(fastest.Nanoseconds()), "GFLOP/s")
	b.ReportMetric(bytes/float64(fastest.Nanoseconds()), "GB/s")
	b.ReportMetric(float64(fastest.Nanoseconds()), "fastest-ns")
}
