package comm

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Buf is memory outside the Go heap: C may keep its address after a call returns, and gradients in it do not pace the
// garbage collector. It comes from a Pool and goes back with Free, or it is a segment of a Window and is freed with the
// window.
type Buf struct {
	mem    []byte       // the length asked for; the region may be longer
	region []byte       // the whole region, of the length of its class; nil for a segment
	slab   *slab        // the slab that holds the region; nil for a segment
	used   bool         // the region was handed out before; a region never used still has the system's zeroes
	pool   *Pool        // nil for a segment
	refs   atomic.Int32 // the owner and every operation in flight; at 0 the memory is reused
	freed  atomic.Bool  // the owner's Free was called: no method may follow
}

// Bytes is the whole buffer. Slices of it must not outlive Free.
func (b *Buf) Bytes() []byte {
	b.checkAlive("Bytes")
	return b.mem
}

// F32 is the buffer as Len()/4 values in the machine's byte order.
func (b *Buf) F32() []float32 {
	b.checkAlive("F32")
	if len(b.mem) < 4 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.mem[0])), len(b.mem)/4)
}

// Len is the length asked for, in bytes.
func (b *Buf) Len() int {
	b.checkAlive("Len")
	return len(b.mem)
}

// Free gives the buffer up; any goroutine may call it, once. The memory is reused when no operation holds it any more.
// A build with the tag invariants then fills it with NaN, and panics at the next reuse if it was written in between.
// The Buf itself is handed out again with the memory, so only that build always detects a use after the next Alloc.
func (b *Buf) Free() {
	if b.pool == nil {
		panic(fmt.Sprintf("comm: Free of a segment of %d bytes: it is freed with its window", len(b.mem)))
	}
	if b.freed.Swap(true) {
		panic(fmt.Sprintf("comm: double free of a buffer of %d bytes", len(b.mem)))
	}
	b.Release()
}

// Hold keeps the memory from reuse until Release; a transport calls it for each operation.
func (b *Buf) Hold() {
	b.checkAlive("Hold")
	b.refs.Add(1)
}

// Release undoes one Hold.
func (b *Buf) Release() {
	switch refs := b.refs.Add(-1); {
	case refs == 0:
		b.pool.put(b)
	case refs < 0:
		panic(fmt.Sprintf("comm: buffer of %d bytes released more often than held", len(b.mem)))
	}
}

func (b *Buf) checkAlive(use string) {
	if b.freed.Load() {
		panic(fmt.Sprintf("comm: %s of a buffer of %d bytes after its Free", use, len(b.mem)))
	}
}
