//go:build blas

package cpu

import (
	"fmt"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kerneltest"
)

// A device takes the fastest instructions; the others are for processors that the tests may never see.
func TestConformanceOfEachInstructionSet(t *testing.T) {
	d := New(2).(*device)
	defer New(1)
	t.Run("none", func(t *testing.T) {
		d.direct = direct{}
		kerneltest.Run(t, d)
	})
	for i, set := range instructionSets() {
		t.Run(fmt.Sprint("set ", i), func(t *testing.T) {
			d.direct.set = set
			kerneltest.Run(t, d)
		})
	}
}

func TestThreadsDoNotChangeAConvolution(t *testing.T) {
	n := kernels.Sizes{5, 7, 12, 10, 9, 3, 1, 1}
	for _, k := range []*kernels.Kernel{kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter} {
		var first []float32
		for _, threads := range []int{1, 2, 3, 16} {
			dev := New(threads)
			a := kernels.Args{N: n}
			for i, need := range k.Need(n) {
				if need > 0 {
					a.V[i] = kernels.Vec{Host: make([]float32, need)}
				}
				for j := range a.V[i].Host {
					a.V[i].Host[j] = float32(j*j%1009)/500 - 1
				}
			}
			if err := dev.Launch(k, a); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = a.V[2].Host
			}
			for j, v := range a.V[2].Host {
				if v != first[j] {
					t.Fatalf("%s: element %d is %g with 1 thread, %g with %d", k.Name, j, first[j], v, threads)
				}
			}
		}
	}
	New(1)
}
