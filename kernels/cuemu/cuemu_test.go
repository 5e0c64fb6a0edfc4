//go:build cuemu

package cuemu

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// launch runs one of the entries of faulty.cpp on a vector that holds 0, 1, 2, ...
func launch(t *testing.T, entry string, n int, grid, block [3]int) ([]float32, error) {
	t.Helper()
	dev := New(false)
	v, err := dev.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, n)
	for i := range got {
		got[i] = float32(i)
	}
	if err := dev.Upload(v, got); err != nil {
		t.Fatal(err)
	}
	err = dev.Launch(faulty(entry, grid, block), kernels.Args{V: kernels.Vecs{v}})
	if err := dev.Download(got, v); err != nil {
		t.Fatal(err)
	}
	if closed := dev.Close(); err == nil {
		err = closed
	}
	return got, err
}

// faulty is a kernel of faulty.cpp.
func faulty(entry string, grid, block [3]int) *kernels.Kernel {
	return &kernels.Kernel{
		Name: entry,
		Need: func(kernels.Sizes) kernels.Counts { return kernels.Counts{} },
		CUDA: &kernel.CUDA{Vecs: 1, Steps: func(kernels.Sizes) [4]kernel.Step {
			return [4]kernel.Step{{Entry: entry, Grid: grid, Block: block}}
		}},
	}
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
	if _, err := launch(t, "few_threads", 64, one, [3]int{5, 12, 1}); err != nil {
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

// The host cannot access device memory, not even by accident, and is told what it did.
func TestDeviceMemoryIsInaccessible(t *testing.T) {
	const touch = "CUEMU_TEST_TOUCH"
	if os.Getenv(touch) != "" {
		v, err := New(false).Alloc(5)
		if err != nil {
			t.Fatal(err)
		}
		p := uintptr(v.Dev + 8)
		t.Logf("touched: %g", **(**float32)(unsafe.Pointer(&p)))
		return
	}
	for _, open := range []string{"", "1"} {
		again := exec.Command(os.Args[0], "-test.run=^TestDeviceMemoryIsInaccessible$", "-test.v")
		again.Env = append(os.Environ(), touch+"=1", "CUEMU_OPEN="+open)
		out, err := again.CombinedOutput()
		const told = "cuemu: the host accesses device memory: byte 8 of a vector of 20 bytes"
		if open == "" && (err == nil || !strings.Contains(string(out), told) || !strings.Contains(string(out), "unexpected fault address")) {
			t.Errorf("error %v, want a fault and %q:\n%s", err, told, out)
		}
		if open != "" && (err != nil || !strings.Contains(string(out), "touched: 0")) {
			t.Errorf("with CUEMU_OPEN: error %v:\n%s", err, out)
		}
	}
}

func TestWriteInFrontOfScratchShows(t *testing.T) {
	dev := New(false)
	v, err := dev.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	k := faulty("before_the_scratch", [3]int{1, 1, 1}, [3]int{32, 1, 1})
	k.CUDA.Scratch = func(kernels.Sizes) int { return 4 }
	if err := dev.Launch(k, kernels.Args{V: kernels.Vecs{v}}); err == nil ||
		!strings.Contains(err.Error(), "memory in front of a vector was written") {
		t.Errorf("error %v, want one of the memory in front", err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// Copies stay inside of a vector.
func TestCopiesFit(t *testing.T) {
	dev := New(false)
	v, err := dev.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"upload of 5 elements into a vector of 4":   dev.Upload(v, make([]float32, 5)),
		"download of 5 elements from a vector of 4": dev.Download(make([]float32, 5), v),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
