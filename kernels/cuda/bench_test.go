//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fluentps/kernels"
	"fluentps/ps/workload"
)

// alone computes without the copies of parameters and gradients.
type alone struct{ *device }

func (alone) Refresh(kernels.Vec) error                { return nil }
func (alone) Fetch(kernels.Vec) (kernels.Event, error) { return nothing{}, nil }

// BenchmarkStep is forward and backward of one batch: alone, and with parameters and gradients that travel, as a step with
// an exchange has it. Between the two lies what copies are not hidden.
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
		for _, travel := range []bool{false, true} {
			const batch = 128
			what := map[bool]string{false: "alone", true: "copies"}[travel]
			b.Run(fmt.Sprintf("model=%s/batch=%d/%s", m.spec.Name, batch, what), func(b *testing.B) {
				d := started(b)
				x := drawn(rand.New(rand.NewPCG(1, 2)), batch, m.from.Cols, m.from.Classes)
				var dev kernels.Device = d
				if !travel {
					dev = alone{d}
				}
				model := newTrained(b, m.spec, m.from, dev, batch)
				step := func() {
					model.Forward(x, nil)
					model.Backward(nil)
					must(b, d.Sync())
				}
				step() // also loads what is loaded late
				for b.Loop() {
					step()
				}
				b.ReportMetric(1e3*b.Elapsed().Seconds()/float64(b.N), "ms/step")
				b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
