//go:build mpi

package mpi

// #include "finalize.h"
import "C"

import gompi "github.com/sbromberger/gompi"

// finalizeMax is how long MPICH may take to end once every rank has reached the last barrier, in seconds.
const finalizeMax = 3

// finalize ends MPI, and returns false if MPICH hangs in it. MPICH up to 4.1 over UCX may hang if a transport such as
// TCP makes the peer acknowledge a flush: a rank that has all its acknowledgements waits for the launcher and no longer
// answers slower ranks (pmodels/mpich#6596). By then no rank has anything left to send.
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

// abortByLauncher ends this rank, and so the job, with the code after finalize has failed. It may return.
func abortByLauncher(code int) { C.fp_leave(C.int(code)) }
