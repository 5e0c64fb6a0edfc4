//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"unsafe"

	"fluentps/internal/comm"
)

// Iallreduce implements comm.Reducer by MPI_Iallreduce and our own polling: a blocking MPI_Allreduce would keep the
// core from the rank that it waits for.
func (t *transport) Iallreduce(b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckReduce(b, off, n)
	span := comm.Span(b, off, n)
	slot := t.ops.Put(operation{kind: waiting, handler: h, buf: b, peer: comm.AnyPeer, n: n})
	return t.submitted(slot, C.fp_allreduce(unsafe.Pointer(unsafe.SliceData(span)), C.int(n/4), C.uint32_t(slot)))
}
