package comm

import "fmt"

// Reducer is what a Transport offers if its ranks can add up vectors together. internal/comm/mpi uses MPI's own collective;
// internal/comm/inproc adds in the order of ranks.
type Reducer interface {
	// Iallreduce replaces the n bytes at off of b, float32 values, by their sums over all ranks: the same bits on every
	// rank, in an order of additions that the transport chooses. Every rank makes the same calls, in the same order and
	// with the same n. The rules of Isend hold: Iallreduce does not block, and b belongs to the transport until the
	// handler has run. The Done names no peer (AnyPeer). A collective cannot be cancelled.
	Iallreduce(b *Buf, off, n int, h Handler) Op
}

// CheckReduce panics unless the arguments of an Iallreduce are in range.
func CheckReduce(b *Buf, off, n int) {
	switch {
	case off < 0 || n <= 0 || n > b.Len()-off:
		panic(fmt.Sprintf("comm: Iallreduce of bytes %d to %d of a buffer of %d", off, off+n, b.Len()))
	case off%4 != 0 || n%4 != 0:
		panic(fmt.Sprintf("comm: Iallreduce of %d bytes at %d: not whole float32 values", n, off))
	}
}
