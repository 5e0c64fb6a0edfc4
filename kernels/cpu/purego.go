//go:build !blas

package cpu

import (
	"sync"

	"fluentps/kernels"
	"fluentps/kernels/gemm"
)

func backend() string { return "pure Go" }

// direct has nothing here: convolutions are products.
type direct struct{}

func newDirect() direct { return direct{} }

func (d *device) convolve(*kernels.Kernel, kernels.Args) bool { return false }

func (d *device) loop(*kernels.Kernel, kernels.Args) bool { return false }

// product splits the rows of C among threads; each element is summed by one of them, in the same
// order whatever their number.
func product(threads int, op gemm.Op, m, n, k int, a, b, c, bias []float32, beta float32) {
	if threads == 1 || m < 2*threads {
		gemm.Rows(op, 0, m, m, n, k, a, b, c, bias, beta)
		return
	}
	var done sync.WaitGroup
	for t := range threads {
		done.Go(func() {
			gemm.Rows(op, m*t/threads, m*(t+1)/threads, m, n, k, a, b, c, bias, beta)
		})
	}
	done.Wait()
}
