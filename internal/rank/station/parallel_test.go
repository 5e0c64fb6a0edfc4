package station

import (
	"sync/atomic"
	"testing"
)

func TestParallelRunsEachPieceOnceAndWaits(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		var calls [7]atomic.Int32
		Parallel(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			want := int32(0)
			if i < n {
				want = 1
			}
			if got := calls[i].Load(); got != want {
				t.Errorf("of %d: piece %d ran %d times, want %d", n, i, got, want)
			}
		}
	}
}
