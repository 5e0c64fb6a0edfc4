package kernel

import (
	"math"
	"testing"
)

func TestNoElementwiseKernelCountsPastAnInt(t *testing.T) {
	s := elementStep("fill", math.MaxInt32)
	if last := GPUElementsMax + s.Grid[0]*s.Block[0]; last > math.MaxInt32 {
		t.Errorf("of a vector of %d elements a thread counts up to %d", GPUElementsMax, last)
	}
	if GPUElementsMax < math.MaxInt32-1<<20 {
		t.Errorf("vectors have at most %d elements, want nearly 2^31", GPUElementsMax)
	}
}
