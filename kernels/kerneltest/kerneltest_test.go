package kerneltest

import (
	"math"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/kernel"
)

func TestAKernelWithoutCasesFails(t *testing.T) {
	for _, cases := range []func() []kernel.Case{nil, func() []kernel.Case { return nil }} {
		if errs := Check(cpu.New(1), &kernels.Kernel{Name: "unknown", Cases: cases}); len(errs) == 0 {
			t.Error("a kernel without cases passed")
		}
	}
}

// broken is a device that corrupts the results of each launch.
type broken struct {
	kernels.Device
	spoil func(a kernels.Args)
}

func (b broken) Launch(k *kernels.Kernel, a kernels.Args) error {
	err := b.Device.Launch(k, a)
	b.spoil(a)
	return err
}

func TestCheckFindsABrokenDevice(t *testing.T) {
	runs := 0
	for name, spoil := range map[string]func(kernels.Args){
		"result off by 1e-4":  func(a kernels.Args) { nudge(a, 1e-4) },
		"writes past the end": func(a kernels.Args) { a.V[2].Host[a.N[0]*a.N[1]] = 0 },
		"changes an input":    func(a kernels.Args) { a.V[0].Host[0] = 9 },
		"not deterministic":   func(a kernels.Args) { runs++; nudge(a, float32(runs)*1e-7) },
		"writes NaN":          func(a kernels.Args) { a.V[2].Host[0] = float32(math.NaN()) },
	} {
		t.Run(name, func(t *testing.T) {
			if errs := Check(broken{cpu.New(1), spoil}, kernels.GemmNT); len(errs) == 0 {
				t.Error("Check found nothing")
			}
		})
	}
}

func nudge(a kernels.Args, by float32) {
	if a.N[0]*a.N[1] > 0 {
		a.V[2].Host[0] += by
	}
}

// twins is a device that computes everything with the Go twins.
type twins struct{ kernels.Device }

func (twins) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := k.Check(a); err != nil {
		return err
	}
	k.CPU(a)
	return nil
}

func TestTwins(t *testing.T) { Run(t, twins{cpu.New(1)}) }
