//go:build blas

package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/kernels"
	"fluentps/kernels/kerneltest"
)

// A device chooses the fastest instruction set. This test also covers the sets for processors that the tests may never see.
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

// Convolutions of random shapes agree with products with the matrix of windows. All sets sum in the same order, except for
// the gradient of the filters.
func TestDirectConvolutionsAreProducts(t *testing.T) {
	d := New(1).(*device)
	sets := instructionSets()
	rapid.Check(t, func(t *rapid.T) {
		n := kernels.Sizes{
			rapid.IntRange(1, 3).Draw(t, "images"), rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(25, 35)).Draw(t, "channels"),
			rapid.IntRange(1, 20).Draw(t, "height"), rapid.IntRange(1, 45).Draw(t, "width"),
			rapid.IntRange(1, 35).Draw(t, "filters"), rapid.IntRange(1, 7).Draw(t, "kernel"),
			rapid.IntRange(1, 3).Draw(t, "stride"), rapid.IntRange(0, 8).Draw(t, "pad"),
		}
		k := rapid.SampledFrom([]*kernels.Kernel{kernels.ConvForward, kernels.ConvBackwardData,
			kernels.ConvBackwardFilter}).Draw(t, "kernel kind")
		beta := rapid.SampledFrom([]float32{0, 1, -0.5}).Draw(t, "beta")
		a := arguments(k, n)
		a.F[0] = beta
		before := slices.Clone(a.V[2].Host)
		d.direct = direct{}
		if err := d.Launch(k, a); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(a.V[2].Host)
		var first []float32
		for i, set := range sets {
			copy(a.V[2].Host, before)
			d.direct.set = set
			if err := d.Launch(k, a); err != nil {
				t.Fatal(err)
			}
			for j, got := range a.V[2].Host {
				if diff := math.Abs(float64(got - want[j])); !(diff <= 1e-4*max(1, math.Abs(float64(want[j])))) {
					t.Fatalf("set %d: element %d is %g, want %g", i, j, got, want[j])
				}
			}
			if i == 0 {
				first = slices.Clone(a.V[2].Host)
			} else if k != kernels.ConvBackwardFilter && !slices.Equal(first, a.V[2].Host) {
				t.Fatalf("set %d and set 0 round differently", i)
			}
		}
	})
}

// The sizes are large enough that several threads share the work.
func TestThreadsDoNotChangeResults(t *testing.T) {
	defer New(1)
	image, plane := kernels.Sizes{5, 7, 12, 10, 9, 3, 1, 1}, kernels.Sizes{9, 19, 401, 1}
	for _, c := range []struct {
		k *kernels.Kernel
		n kernels.Sizes
	}{
		{kernels.ConvForward, image}, {kernels.ConvBackwardData, image}, {kernels.ConvBackwardFilter, image},
		{kernels.BatchNorm, plane}, {kernels.BatchNormEval, plane}, {kernels.BatchNormGrad, plane},
		{kernels.BiasReLU, kernels.Sizes{257, 257}}, {kernels.ReLUGrad, kernels.Sizes{257, 257}}, {kernels.BiasGrad, kernels.Sizes{257, 257}},
		{kernels.ChannelBiasReLU, plane}, {kernels.ChannelBiasGrad, plane},
		{kernels.MaxPool, kernels.Sizes{300, 15, 17}}, {kernels.MaxPoolGrad, kernels.Sizes{1100, 15, 17}},
	} {
		t.Run(c.k.Name, func(t *testing.T) {
			one := launched(t, 1, c.k, c.n)
			for _, threads := range []int{2, 3, 16} {
				for v, vec := range launched(t, threads, c.k, c.n) {
					for i, got := range vec.Host {
						if want := one[v].Host[i]; math.Float32bits(got) != math.Float32bits(want) {
							t.Fatalf("vector %d element %d is %g with %d threads, %g with one", v, i, got, threads, want)
						}
					}
				}
			}
		})
	}
}

// launched launches k and returns its vectors.
func launched(t *testing.T, threads int, k *kernels.Kernel, n kernels.Sizes) kernels.Vecs {
	a := arguments(k, n)
	if err := New(threads).Launch(k, a); err != nil {
		t.Fatal(err)
	}
	return a.V
}

// arguments returns the same arguments at every call.
func arguments(k *kernels.Kernel, n kernels.Sizes) kernels.Args {
	a := kernels.Args{N: n, F: kernels.Scalars{0.5}}
	for i, need := range k.Need(n) {
		a.V[i] = kernels.Vec{Host: make([]float32, need)}
		for j := range a.V[i].Host {
			a.V[i].Host[j] = float32(j*j%1009)/500 - 1
			if k == kernels.MaxPoolGrad && i == 1 {
				a.V[i].Host[j] = float32(j % 7 % 4) // index of the largest value
			}
		}
	}
	return a
}

// The sums of batch norm must not cancel when the mean is far larger than the deviations from it.
func TestBatchNormOfLargeMeans(t *testing.T) {
	n := kernels.Sizes{8, 1, 33, 0}
	x := make([]float32, 8*33)
	for i := range x {
		x[i] = 4096 + float32(i%2)
	}
	y, saved := make([]float32, len(x)), make([]float32, 2)
	one, zero := kernels.Vec{Host: []float32{1}}, kernels.Vec{Host: []float32{0}}
	a := kernels.Args{N: n, F: kernels.Scalars{1e-5}, V: kernels.Vecs{{Host: x}, one, zero, {Host: y}, {Host: saved}}}
	if err := New(1).Launch(kernels.BatchNorm, a); err != nil {
		t.Fatal(err)
	}
	if inverse := 1 / math.Sqrt(0.25+1e-5); saved[0] != 4096.5 || math.Abs(float64(saved[1])-inverse) > 1e-6 ||
		math.Abs(float64(y[1])-inverse/2) > 1e-6 {
		t.Errorf("mean %g, inverse deviation %g, first odd value %g; want 4096.5, %g, %g", saved[0], saved[1], y[1], inverse, inverse/2)
	}
}

// One infinite value makes the statistics of its channel the same as in the twin, whatever the position of the value.
func TestBatchNormOfInfiniteValues(t *testing.T) {
	for _, special := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
		for _, at := range []int{0, 1, 37, 75} {
			a := arguments(kernels.BatchNorm, kernels.Sizes{2, 1, 38, 1})
			a.V[0].Host[at] = special
			want := a
			for i, v := range a.V {
				want.V[i].Host = slices.Clone(v.Host)
			}
			kernels.BatchNorm.CPU(want)
			if err := New(1).Launch(kernels.BatchNorm, a); err != nil {
				t.Fatal(err)
			}
			for i, got := range a.V[4].Host {
				if same := want.V[4].Host[i]; math.Float32bits(got) != math.Float32bits(same) && !(got != got && same != same) {
					t.Errorf("%g at %d: saved value %d is %g, the twin has %g", special, at, i, got, same)
				}
			}
		}
	}
}
