//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"fluentps/kernels"
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
