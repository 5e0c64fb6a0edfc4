//go:build !blas

package cpu

import (
	"os"
	"sync"

	"fluentps/kernels"
)

// opened finds no library: products are our twins.
var opened = sync.OnceValues(func() (session, error) {
	_, err := allowed(os.Getenv)
	return session{set: Set{Products: "Go"}, level: Processor(), products: Processor()}, err
})

// multiply stands for no library.
var multiply multiplier

// direct has nothing here: convolutions are products.
type direct struct{}

func newDirect(Level) direct { return direct{} }

func (d *device) convolve(*kernels.Kernel, kernels.Args) bool { return false }

func (d *device) loop(*kernels.Kernel, kernels.Args) bool { return false }
