//go:build cuemu

package cuemu

import (
	"math"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
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

// launch runs one of the entries of faulty.cpp on a vector that holds 0, 1, 2, ...
func launch(t *testing.T, entry string, n int, grid, block [3]int) ([]float32, error) {
	t.Helper()
	dev := New(false)
	v, err := dev.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.Host {
		v.Host[i] = float32(i)
	}
	k := &kernels.Kernel{
		Name: entry,
		Need: func(kernels.Sizes) [8]int { return [8]int{} },
		CUDA: &kernel.CUDA{Vecs: 1, Steps: func(kernels.Sizes) [4]kernel.Step {
			return [4]kernel.Step{{Entry: entry, Grid: grid, Block: block}}
		}},
	}
	err = dev.Launch(k, kernels.Args{V: kernels.Vecs{v}})
	got := append([]float32{}, v.Host...)
	if closed := dev.Close(); err == nil {
		err = closed
	}
	return got, err
}

func TestPlaces(t *testing.T) {
	grid, block := [3]int{2, 3, 2}, [3]int{4, 8, 2}
	got, err := launch(t, "positions", 6*12*64, grid, block)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 * 64 {
		lane := i % 32
		down, up := lane+5, lane-7
		if down > 31 {
			down = lane
		}
		if up < 0 {
			up = lane
		}
		for j, want := range []int{i, down, up, lane ^ 9, 11, 31 * 32 / 2} {
			if got[6*i+j] != float32(want) {
				t.Fatalf("thread %d value %d is %g, want %d", i, j, got[6*i+j], want)
			}
		}
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

func TestFaultsAreReported(t *testing.T) {
	one := [3]int{1, 1, 1}
	for _, c := range []struct {
		entry       string
		grid, block [3]int
		want        string
	}{
		{"divergent_barrier", one, [3]int{64, 1, 1}, "divergent_barrier: block (0,0,0): deadlock: from thread (0,0,0) at the barrier of line "},
		{"divergent_barrier", one, [3]int{64, 1, 1}, "; from thread (40,0,0) returned"},
		{"two_barriers", one, [3]int{2, 1, 1}, "; from thread (1,0,0) at the barrier of line "},
		{"absent_lanes", one, [3]int{32, 1, 1}, "from thread (0,0,0) at the shuffle of line "},
		{"beyond_the_end", one, [3]int{64, 1, 1}, "thread (63,0,0) of block (0,0,0): access outside of every vector"},
		{"before_the_start", one, [3]int{64, 1, 1}, "memory in front of a vector was written"},
		{"division_by_zero", one, [3]int{64, 1, 1}, "thread (3,0,0) of block (0,0,0): division by zero"},
		{"no_such_entry", one, one, "no_such_entry: no such entry"},
		{"with_barrier", one, [3]int{1025, 1, 1}, "with_barrier: a block of (1025,1,1) threads; 1 to 1024 are possible"},
		{"few_threads", one, [3]int{5, 13, 1}, "few_threads: a block of (5,13,1) threads; its __launch_bounds__ allow 64"},
		{"with_barrier", one, [3]int{64, 0, 1}, "a block of (64,0,1) threads"},
		{"with_barrier", [3]int{1, 65536, 1}, one, "with_barrier: a grid of (1,65536,1) blocks; at least 1, y and z at most 65535"},
		{"with_barrier", [3]int{0, 1, 1}, one, "a grid of (0,1,1) blocks"},
	} {
		if _, err := launch(t, c.entry, 64, c.grid, c.block); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.entry, err, c.want)
		}
	}
	if _, err := launch(t, "few_threads", 64, one, [3]int{8, 8, 1}); err != nil {
		t.Errorf("few_threads with as many as its bounds allow: %v", err)
	}
	// A report does not change the emulator or Go's own handling of faults.
	if _, err := launch(t, "with_barrier", 64, one, [3]int{64, 1, 1}); err != nil {
		t.Errorf("after reports: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil dereference in Go did not panic")
		}
	}()
	var p *int
	*p = 1
}
