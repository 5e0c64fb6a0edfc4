//go:build cuemu && !races

package cuemu

import (
	"math"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kerneltest"
)

var orders = map[string]bool{"ascending": false, "descending": true}

func TestConformance(t *testing.T) {
	for name, reverse := range orders {
		t.Run(name, func(t *testing.T) {
			for _, k := range kernels.Table {
				t.Run(k.Name, func(t *testing.T) {
					dev := New(reverse)
					kerneltest.RunKernel(t, dev, k)
					if err := dev.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

func TestMissingBarrierShows(t *testing.T) {
	right, err := launch(t, "with_barrier", 128, [3]int{2, 1, 1}, [3]int{64, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range right {
		if want := float32(i/64*64 + 63 - i%64); v != want {
			t.Fatalf("element %d is %g, want %g", i, v, want)
		}
	}
	wrong, err := launch(t, "missing_barrier", 128, [3]int{2, 1, 1}, [3]int{64, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	// The first half of each block reads what no thread has written yet, in the second block too.
	for _, i := range []int{0, 31, 64, 95} {
		if !math.IsNaN(float64(wrong[i])) {
			t.Errorf("element %d is %g without the barrier, want NaN", i, wrong[i])
		}
	}
	// A missing barrier that only shows when warps differ in speed: warps 2 and 3 run after warp 1 has continued.
	hasty, err := launch(t, "hasty_warp", 128, [3]int{1, 1, 1}, [3]int{128, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if hasty[0] != 1 || hasty[127] != -1 {
		t.Errorf("warps 0 and 3 see %g and %g, want 1 and -1", hasty[0], hasty[127])
	}
}
