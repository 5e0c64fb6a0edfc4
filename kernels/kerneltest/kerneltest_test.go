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

// Words that hold bit patterns are compared as bits: another NaN, or another small integer, is another value.
func TestCheckFindsAWrongBit(t *testing.T) {
	flip := func(v int) func(kernels.Args) {
		return func(a kernels.Args) {
			word := &a.V[v].Host[0]
			*word = math.Float32frombits(math.Float32bits(*word) ^ 1)
		}
	}
	for _, c := range []struct {
		k *kernels.Kernel
		v int
	}{{kernels.TopK, 2}, {kernels.TopK, 0}, {kernels.ToBFloat16, 1}, {kernels.FromFloat16, 1}, {kernels.FromFloat16, 0}} {
		if errs := Check(broken{cpu.New(1), flip(c.v)}, c.k); len(errs) == 0 {
			t.Errorf("Check of %s found nothing in vector %d", c.k.Name, c.v)
		}
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
