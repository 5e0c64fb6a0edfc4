//go:build cuda

package cuda

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"fluentps/kernels"
)

// Refresh and Fetch copy no elements that MPI reaches, and these are written when the Event of a Fetch has passed. All other
// elements are copied. Every element has the same place in the arena as on the host.
func TestPlacedMemoryIsCopiedWhereNobodyElseReachesIt(t *testing.T) {
	t.Setenv("CUEMU_OPEN", "1") // the emulated GPU's memory
	orders(t, func(t *testing.T) {
		for _, pinned := range []bool{true, false} {
			d := started(t)
			const n = 300
			host := make([]float32, n)
			reached := []kernels.Range{{Lo: 8, Hi: 100}, {Lo: 140, Hi: 160}, {Lo: 160, Hi: 170}, {Lo: 290, Hi: n}}
			isReached := func(i int) bool {
				return slices.ContainsFunc(reached, func(r kernels.Range) bool { return r.Lo <= i && i < r.Hi })
			}
			if pinned {
				must(t, d.Pin(host))
			}
			whole, err := d.Place(host, reached)
			must(t, err)
			for i := range host {
				host[i] = 1
			}
			cuts := []int{0, 40, 90, 150, 165, n} // one part lies in reached completely
			var parts []kernels.Vec
			for i, lo := range cuts[:len(cuts)-1] {
				v, err := d.Wrap(host[lo:cuts[i+1]])
				must(t, err)
				must(t, d.Refresh(v))
				if v.Dev != whole.Dev+uint64(lo*elemBytes) || v.N != cuts[i+1]-lo {
					t.Fatalf("elements %d to %d lie at %d of the arena", lo, cuts[i+1]-1, int(v.Dev-whole.Dev)/elemBytes)
				}
				parts = append(parts, v)
			}
			check := func(what string, values []float32, want func(i int) float32) {
				t.Helper()
				for i, v := range values {
					if v != want(i) {
						t.Fatalf("pinned %t: element %d of %s is %g, want %g", pinned, i, what, v, want(i))
					}
				}
			}
			found := make([]float32, n)
			must(t, d.Download(found, whole))
			check("the GPU after Refresh", found, func(i int) float32 {
				if isReached(i) {
					return 0
				}
				return 1
			})
			for k, v := range parts {
				must(t, d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{v.N}, F: kernels.Scalars{float32(2 + k)}}))
				e, err := d.Fetch(v)
				must(t, err)
				for tries := 0; k%2 == 0 && tries < 1000 && !e.Passed(); tries++ {
				}
				must(t, e.Wait())
				if onlyEmulated { // the host can read the emulated GPU's memory, as a network card can read a GPU's
					p := uintptr(v.Dev)
					check("a part", unsafe.Slice(*(**float32)(unsafe.Pointer(&p)), v.N), func(int) float32 { return float32(2 + k) })
				}
				check("the host", host[cuts[k]:cuts[k+1]], func(i int) float32 {
					if isReached(cuts[k] + i) {
						return 1
					}
					return float32(2 + k)
				})
			}
		}
	})
}

func TestPlaceFailures(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	for _, c := range []struct{ fail, want string }{
		{"cuMemAlloc:1", "allocate 256 bytes ("},
		{"cuMemsetD32Async:1:700", "clear 256 bytes: CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
	} {
		t.Setenv("CUEMU_FAIL", c.fail)
		d, err := New(firstGPU(t), Options{})
		must(t, err)
		_, err = d.(kernels.Placer).Place(make([]float32, 64), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.fail, err, c.want)
		}
		must(t, d.Close())
	}
}
