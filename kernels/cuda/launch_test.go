//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// A launch stores no pointer from Go in C's memory. Where it did, the collector read what was in that memory before, and ended the
// program if it looked like a pointer to memory of Go's that is free. Here all memory that C allocates next looks so, while the
// collector runs.
func TestLaunchesWhileGarbageIsCollected(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") != "message" {
		if !onlyEmulated {
			t.Skip("needs the emulated driver, whose pinned memory is malloc's")
		}
		self := exec.Command(os.Args[0], "-test.run=^TestLaunchesWhileGarbageIsCollected$")
		self.Env = append(os.Environ(), "FLUENTPS_TEST_CUDA=message", "CUEMU_FAIL=")
		if out, err := self.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%.2000s", err, out)
		}
		return
	}
	d := started(t)
	x, err := d.Alloc(64)
	must(t, err)
	stop := make(chan struct{})
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		var heap [][]*int
		for i := range 1 << 12 {
			heap = append(heap, make([]*int, 256))
			heap[i][0] = new(int)
		}
		for {
			select {
			case <-stop:
				runtime.KeepAlive(heap)
				return
			default:
				runtime.GC()
			}
		}
	}()
	garbage := make([]byte, 64<<20)
	free := uintptr(unsafe.Pointer(&garbage[32<<20]))
	garbage = nil
	runtime.GC()
	runtime.GC()
	must(t, d.enter())
	defer d.leave()
	for range 20000 {
		for bytes := 40; bytes <= 120; bytes += 16 {
			var made [4][]float32
			for i := range made {
				made[i], err = allocHost(bytes / elemBytes)
				must(t, err)
				for k := range bytes / 8 {
					*(*uintptr)(unsafe.Pointer(&made[i][2*k])) = free
				}
			}
			for _, m := range made {
				must(t, freeHost(m))
			}
		}
		must(t, d.Launch(kernels.Axpy, kernels.Args{V: kernels.Vecs{x, x}, N: kernels.Sizes{64}, F: kernels.Scalars{1}}))
	}
	close(stop)
	<-collected
}

// A device finds every entry when it is made: with lazy loading the driver loads an entry's code then, and no launch waits for that.
func TestEveryEntryIsFoundAtTheStart(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	entries := map[string]bool{}
	for _, k := range kernels.Table {
		for _, part := range strings.Split(k.CUDA.PTX, ".visible .entry ")[1:] {
			name, _, _ := strings.Cut(part, "(")
			entries[name] = true
		}
	}
	for n, want := range map[int]string{1: "find the entry ", len(entries): "find the entry ", len(entries) + 1: ""} {
		t.Setenv("CUEMU_FAIL", fmt.Sprintf("cuModuleGetFunction:%d:500", n))
		d, err := New(firstGPU(t), Options{})
		if err == nil {
			must(t, d.Close())
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the search for entry %d of %d fails: error %v, want %q", n, len(entries), err, want)
		}
	}
}

// Sizes that no grid can have give an error that says what to change.
func TestGridsThatAreTooLarge(t *testing.T) {
	d := started(t)
	const rows = 64*kernel.GridMax + 1
	x, err := d.Alloc(rows)
	must(t, err)
	y, err := d.Alloc(rows)
	must(t, err)
	const want = "launch gemm_nn of grid [1 65536 1], sizes [4194241 1 1 0 0 0 0 0]: a grid has at most 65535 blocks " +
		"in y and in z; take smaller batches or layers"
	err = d.Launch(kernels.GemmNN, axpy(rows, 1, x.Slice(0, 1), x, y))
	if broken := (*kernels.Failure)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want a Failure, %q", err, want)
	}
	must(t, d.Launch(kernels.GemmNN, axpy(64, 1, x.Slice(0, 1), x, y))) // the device goes on
}
