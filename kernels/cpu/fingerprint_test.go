//go:build blas

package cpu

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"fluentps/kernels"
)

// TestFingerprint logs the name of the kernel set and a hash of the bits that it computes. tests/kernelsets.sh distinguishes
// sets by this line.
func TestFingerprint(t *testing.T) {
	h := fnv.New64a()
	add := func(values []float32) {
		for _, v := range values {
			fmt.Fprintf(h, "%08x", math.Float32bits(v))
		}
	}
	eachProduct(t, func(t *testing.T, k *kernels.Kernel, n kernels.Sizes) {
		add(product(t, 1, k, productArgs(k, n, [3]int{})))
	})
	for _, k := range []*kernels.Kernel{kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter} {
		add(launched(t, 1, k, kernels.Sizes{5, 7, 12, 10, 9, 3, 1, 1})[2].Host)
	}
	for _, v := range launched(t, 1, kernels.BatchNorm, kernels.Sizes{9, 19, 401, 1}) {
		add(v.Host)
	}
	t.Logf("kernel set %s: %016x", Backend(), h.Sum64())
}
