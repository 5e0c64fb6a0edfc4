//go:build !blas

package cpu

import (
	"fmt"
	"os"
	"sync"

	"fluentps/kernels"
)

// chosen uses no library: the Go twins compute products.
var chosen = sync.OnceValues(func() (session, error) {
	if wanted := os.Getenv(LibraryVariable); wanted != "" && wanted != twinLibrary {
		return session{}, fmt.Errorf("%s is %q, but this program is plain Go: unset it, or make build", LibraryVariable, wanted)
	}
	_, err := allowedLevel(os.Getenv)
	return session{set: Set{Products: twinProducts}, level: Processor(), products: Processor()}, err
})

// multiply and multiplyOneCaller are nil: there is no library.
var multiply, multiplyOneCaller multiplier

// spareProcessors has nothing to do: Go's scheduler can preempt plain Go.
func spareProcessors(int) {}

// direct is empty: convolutions are products.
type direct struct{}

func newDirect(Level) direct { return direct{} }

func (d *device) convolve(*kernels.Kernel, kernels.Args) bool { return false }

func (d *device) loop(*kernels.Kernel, kernels.Args) bool { return false }
