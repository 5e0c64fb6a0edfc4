//go:build cuda

package cuda

import (
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
