//go:build cuda

package cuda

import (
	"strings"
	"sync"
	"testing"

	"fluentps/kernels"
)

// Goroutines attach themselves to a device while the one that computes finds out that the device has failed. The race detector
// watches, where it is on.
func TestADeviceFailsWhileOthersAttach(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("CUEMU_FAIL", "kernel:1")
	d := started(t)
	v, err := d.Alloc(8)
	must(t, err)
	failed := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for attached := true; attached; {
				if attached = d.Attach() == nil; attached {
					d.Detach()
				}
			}
			<-failed // Attach fails only once the device has
		})
	}
	must(t, d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{8}}))
	first := d.Sync()
	close(failed)
	others.Wait()
	if first == nil || d.Attach() != first {
		t.Errorf("the device failed with %v, and then with %v", first, d.Attach())
	}
}

// Where ranks outnumber cores a wait for the GPU leaves its core to another rank, whatever it waits for. Two devices of a process share the
// context, and so its flags.
func TestWaitsSleep(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("CUEMU_POLL", "no")
	for range 2 { // the flags end with the context
		first, err := New(firstGPU(t), Options{Sleep: true})
		must(t, err)
		second, err := New(firstGPU(t), Options{Sleep: true})
		must(t, err)
		must(t, work(first))
		must(t, work(second))
		must(t, second.Close())
		must(t, first.Close())
	}
	polls, err := New(firstGPU(t), Options{})
	must(t, err)
	if err := work(polls); err == nil {
		t.Error("without the option, too, no wait polls")
	}
	t.Setenv("CUEMU_POLL", "") // Close waits, too
	must(t, polls.Close())
	t.Setenv("CUEMU_FAIL", "cuDevicePrimaryCtxSetFlags:1:2") // counted from the first context on
	first, err := New(firstGPU(t), Options{Sleep: true})
	must(t, err)
	if _, err := New(firstGPU(t), Options{Sleep: true}); err == nil ||
		!strings.Contains(err.Error(), "let waits sleep: CUDA_ERROR_OUT_OF_MEMORY (2)") {
		t.Errorf("error %v", err)
	}
	must(t, first.Close())
}
