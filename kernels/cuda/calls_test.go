//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"fluentps/ps/workload"
)

// calls are the calls of the driver that cost time on the host.
type calls struct{ launches, toHost, toGPU int }

// callsOfSteps counts the calls of a device that takes so many steps, without computing kernels.
func callsOfSteps(t *testing.T, spec workload.ModelSpec, from workload.Samples, batch, steps int) (c calls) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	t.Setenv("CUEMU_CALLS", file)
	d, err := New(firstGPU(t), Options{Gemm: Own})
	must(t, err)
	m := newTrained(t, spec, from, d, batch)
	x := drawn(rand.New(rand.NewPCG(1, 2)), batch, from.Cols, from.Classes)
	for range steps {
		m.Forward(x, nil)
		m.Backward(nil)
	}
	must(t, d.Close())
	line, err := os.ReadFile(file)
	must(t, err)
	_, err = fmt.Sscan(string(line), &c.launches, &c.toHost, &c.toGPU)
	must(t, err)
	return c
}

// The time of a step of small layers is that of its launches and copies. A step copies parameters and gradients once
// for each of the 20 layers, the batch with its labels, and the losses with the hits.
func TestLaunchesAndCopiesOfAStep(t *testing.T) {
	if !onlyEmulated {
		t.Skip("the emulated driver counts calls")
	}
	t.Setenv("CUEMU_KERNELS", "none")
	from := workload.Samples{Cols: 3 * 32 * 32, Classes: 10, Image: workload.Image{Channels: 3, Height: 32, Width: 32}}
	of := func(steps int) calls {
		return callsOfSteps(t, workload.ModelSpec{Name: "resnet20"}, from, 128, steps)
	}
	one, three := of(1), of(3)
	step := calls{(three.launches - one.launches) / 2, (three.toHost - one.toHost) / 2, (three.toGPU - one.toGPU) / 2}
	t.Logf("a step of resnet20 at batch 128: %d launches, %d copies to the host, %d to the GPU", step.launches, step.toHost, step.toGPU)
	if step.launches > launchesMax {
		t.Errorf("%d launches, at most %d", step.launches, launchesMax)
	}
	const layers = 20
	if want := (calls{step.launches, layers + 1, layers + 1}); step != want {
		t.Errorf("%d copies to the host and %d to the GPU, want %d and %d", step.toHost, step.toGPU, want.toHost, want.toGPU)
	}
}

const launchesMax = 147
