//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fluentps/kernels"
	"fluentps/ps/workload"
)

// withoutCopies is a device that does not copy parameters and gradients.
type withoutCopies struct{ *device }

func (withoutCopies) Refresh(kernels.Vec) error                { return nil }
func (withoutCopies) Fetch(kernels.Vec) (kernels.Event, error) { return passedEvent{}, nil }

// BenchmarkStep times forward and backward of one batch: alone, and with copies of parameters and gradients, as in a
// training step. The difference is the time of copies that do not overlap with computation.
func BenchmarkStep(b *testing.B) {
	image := func(channels, side int) workload.Samples {
		return workload.Samples{Cols: channels * side * side, Classes: 10, Image: workload.Image{Channels: channels, Height: side, Width: side}}
	}
	for _, m := range []struct {
		spec workload.ModelSpec
		from workload.Samples
	}{
		{workload.ModelSpec{Name: "mlp", Layers: []int{256, 128}}, workload.Samples{Cols: 784, Classes: 10}},
		{workload.ModelSpec{Name: "lenet"}, image(1, 28)},
		{workload.ModelSpec{Name: "resnet20"}, image(3, 32)},
		{workload.ModelSpec{Name: "resnet56"}, image(3, 32)},
	} {
		for _, copies := range []bool{false, true} {
			const batch = 128
			what := map[bool]string{false: "alone", true: "copies"}[copies]
			b.Run(fmt.Sprintf("model=%s/batch=%d/%s", m.spec.Name, batch, what), func(b *testing.B) {
				d := started(b)
				x := drawn(rand.New(rand.NewPCG(1, 2)), batch, m.from.Cols, m.from.Classes)
				var dev kernels.Device = d
				if !copies {
					dev = withoutCopies{d}
				}
				model := newTrained(b, m.spec, m.from, dev, batch)
				step := func() {
					model.Forward(x, nil)
					model.Backward(nil)
					must(b, d.Sync())
				}
				step() // the first step also loads the entries
				for b.Loop() {
					step()
				}
				b.ReportMetric(1e3*b.Elapsed().Seconds()/float64(b.N), "ms/step")
				b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}

// BenchmarkProduct times products of a network at batch 128, and a large one: our kernels, and cuBLAS in float32 and TF32.
func BenchmarkProduct(b *testing.B) {
	for _, c := range []struct {
		k *kernels.Kernel
		n kernels.Sizes
	}{
		{kernels.GemmNT, kernels.Sizes{128, 256, 784}},
		{kernels.GemmTN, kernels.Sizes{256, 784, 128}},
		{kernels.GemmNN, kernels.Sizes{128, 128, 10}},
		{kernels.GemmNN, kernels.Sizes{2048, 2048, 2048}},
	} {
		for _, o := range []Options{{Gemm: Own}, {Gemm: CuBLAS}, {Gemm: CuBLAS, Math: TF32}} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d/%s%s", c.k.Name, c.n[0], c.n[1], c.n[2], o.Gemm, o.Math), func(b *testing.B) {
				made, err := New(firstGPU(b), o)
				if err != nil {
					b.Skip(err)
				}
				defer func() { must(b, made.Close()) }()
				a := kernels.Args{N: c.n}
				need := c.k.Need(c.n)
				for i := range 3 {
					a.V[i], err = made.Alloc(need[i])
					must(b, err)
				}
				must(b, made.Launch(c.k, a))
				must(b, made.Sync())
				const launches = 50 // per wait, as in training
				for b.Loop() {
					for range launches {
						must(b, made.Launch(c.k, a))
					}
					must(b, made.Sync())
				}
				flops, _ := c.k.Cost(c.n)
				b.ReportMetric(launches*flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
