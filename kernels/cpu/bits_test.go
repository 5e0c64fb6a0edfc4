package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"fluentps/kernels"
)

// productSizes are the sizes of the products in tests of bits: sizes that fit vectors, sizes that do not, and sizes that are
// cut into tiles.
var productSizes = []kernels.Sizes{
	{1, 10, 20}, {7, 3, 65}, {8, 19, 30}, {33, 17, 64}, {32, 256, 784}, {100, 10, 300}, {64, 576, 64},
	{250, 301, 77}, {301, 250, 77}, {300, 513, 40}, {513, 300, 33}, {128, 128, 200},
}

// eachProduct calls f for each of productSizes and each way to store the operands.
func eachProduct(t *testing.T, f func(t *testing.T, k *kernels.Kernel, n kernels.Sizes)) {
	for _, k := range []*kernels.Kernel{kernels.GemmNN, kernels.GemmNT, kernels.GemmTN} {
		for _, n := range productSizes {
			t.Run(fmt.Sprintf("%s/%dx%dx%d", k.Name, n[0], n[1], n[2]), func(t *testing.T) { f(t, k, n) })
		}
	}
}

// productArgs returns arguments of a product, the same at every call. No two rows are equal, and the sums are inexact. Vector
// i begins offsets[i] elements after a multiple of 64 bytes. C holds a NaN, because the product must not read it.
func productArgs(k *kernels.Kernel, n kernels.Sizes, offsets [3]int) kernels.Args {
	a := kernels.Args{N: n}
	for i, need := range k.Need(n) {
		if i == 3 {
			break // no bias
		}
		memory := make([]float32, need+32)
		at := (64-int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%64))/4%16 + offsets[i]
		a.V[i] = kernels.Vec{Host: memory[at : at+need : at+need]}
		state := uint32(i + 1)
		for j := range a.V[i].Host {
			state = state*1664525 + 1013904223
			a.V[i].Host[j] = float32(int32(state)>>8) / (1 << 23)
		}
	}
	a.V[2].Host[0] = float32(math.NaN())
	return a
}

// product launches k and returns C.
func product(t *testing.T, threads int, k *kernels.Kernel, a kernels.Args) []float32 {
	if err := New(threads).Launch(k, a); err != nil {
		t.Error(err)
	}
	return a.V[2].Host
}

// mustEqual reports an error unless got and want have the same bits.
func mustEqual(t *testing.T, what string, got, want []float32) {
	t.Helper()
	different, first := 0, -1
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			if different++; first < 0 {
				first = i
			}
		}
	}
	if different > 0 {
		t.Errorf("%s: %d of %d elements differ; the first, number %d, is %.9g and was %.9g", what, different, len(want),
			first, got[first], want[first])
	}
}

// A product has the same bits each time, wherever its operands and its result lie in memory, and whatever other threads
// multiply at the same time. Reproducible runs need this, and so does the equality of ranks in one process and in many.
func TestTheSameProductHasTheSameBits(t *testing.T) {
	eachProduct(t, func(t *testing.T, k *kernels.Kernel, n kernels.Sizes) {
		want := slices.Clone(product(t, 1, k, productArgs(k, n, [3]int{})))
		for i := range 3 {
			for _, offset := range []int{1, 2, 4, 7, 8, 15} {
				var offsets [3]int
				offsets[i] = offset
				mustEqual(t, fmt.Sprintf("vector %d begins %d elements after 64 bytes", i, offset), product(t, 1, k, productArgs(k, n, offsets)), want)
			}
		}
		var concurrent [4][]float32
		var done sync.WaitGroup
		for i := range concurrent {
			done.Go(func() { concurrent[i] = slices.Clone(product(t, 1, k, productArgs(k, n, [3]int{i, i, i}))) })
		}
		done.Wait()
		for _, got := range concurrent {
			mustEqual(t, "with concurrent products", got, want)
		}
	})
}

// A product has the same bits with any number of threads.
func TestThreadsDoNotChangeProducts(t *testing.T) {
	eachProduct(t, func(t *testing.T, k *kernels.Kernel, n kernels.Sizes) {
		want := slices.Clone(product(t, 1, k, productArgs(k, n, [3]int{})))
		for _, threads := range []int{2, 3, 5, 16} {
			mustEqual(t, fmt.Sprint(threads, " threads"), product(t, threads, k, productArgs(k, n, [3]int{})), want)
		}
		twin := productArgs(k, n, [3]int{})
		k.CPU(twin)
		for i, w := range twin.V[2].Host {
			if diff := math.Abs(float64(want[i] - w)); !(diff <= 8*math.Sqrt(float64(n[2]))/(1<<23)) {
				t.Fatalf("element %d is %g, the twin has %g", i, want[i], w)
			}
		}
	})
}
