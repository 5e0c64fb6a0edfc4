//go:build !blas

package cpu

import (
	"fmt"
	"os"
	"sync"

	"fluentps/kernels"
)

// opened finds no library: products are our twins.
var opened = sync.OnceValues(func() (session, error) {
	if wanted := os.Getenv(LibraryVariable); wanted != "" && wanted != goProducts {
		return session{}, fmt.Errorf("%s is %q, and this program is plain Go: unset it, or make build", LibraryVariable, wanted)
	}
	_, err := allowed(os.Getenv)
	return session{set: Set{Products: ownProducts}, level: Processor(), products: Processor()}, err
})

// multiply and multiplyAlone stand for no library.
var multiply, multiplyAlone multiplier

// spareProcessors has nothing to do: the scheduler sees what plain Go computes.
func spareProcessors(int) {}

// direct has nothing here: convolutions are products.
type direct struct{}

func newDirect(Level) direct { return direct{} }

func (d *device) convolve(*kernels.Kernel, kernels.Args) bool { return false }

func (d *device) loop(*kernels.Kernel, kernels.Args) bool { return false }
