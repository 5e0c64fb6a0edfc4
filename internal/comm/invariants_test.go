//go:build invariants

package comm

import (
	"math"
	"testing"
)

func TestStaleSliceReadsNaN(t *testing.T) {
	p := NewPool(0)
	b := mustAlloc(t, p, 1<<20)
	stale := b.F32()
	b.Free()
	if v := float64(stale[17]); !math.IsNaN(v) {
		t.Fatalf("a freed buffer reads %v", v)
	}
	stale[17] = 3
	mustPanic(t, "written after its Free", func() { p.Alloc(1 << 20) })
}
