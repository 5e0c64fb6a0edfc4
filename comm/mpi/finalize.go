//go:build mpi

package mpi

// #include "finalize.h"
import "C"

import gompi "github.com/sbromberger/gompi"

// finalizeMax is how long, in seconds, MPICH may take to end once every rank has come to the last barrier.
const finalizeMax = 3

// finalize ends MPI, or tells that MPICH hangs in it. Up to 4.1, over UCX, it may: where a transport asks the peer to
// acknowledge a flush, as TCP does, a rank that has all its acknowledgements goes to wait for the launcher, and answers
// those that are slower no more (pmodels/mpich#6596). All that the ranks had to say has been said by then.
func finalize() bool {
	compiled, _ := versions()
	if family(compiled) == mpich {
		if rc := C.fp_finalize(finalizeMax); rc >= 0 {
			return rc == 0
		}
	}
	gompi.Stop()
	return true
}

// leave ends this rank, and so the job, with the code when finalize was in vain; it need not return.
func leave(code int) { C.fp_leave(C.int(code)) }
