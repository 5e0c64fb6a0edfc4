package comm

import "fmt"

// Reducer is what a Transport offers beside point-to-point messages when its ranks can add up vectors together.
// comm/mpi leaves that to MPI's own collective; comm/inproc adds in the order of ranks.
type Reducer interface {
	// Iallreduce replaces the n bytes at off of b, float32 values, by their sums over all ranks: the same bits on every
	// rank, in an order of additions that is the transport's affair. Every rank calls it as often, in the same order and
	// with the same n. It keeps the rules of Isend: it does not block, and b is the transport's until the handler ran,
	// whose Done names no peer (AnyPeer). A collective cannot be cancelled.
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
