//go:build mpi

package mpi

// #include "shim.h"
import "C"

import "fluentps/internal/comm"

// Bind keeps this thread, which must be the one that drives t, on one core, and returns the number of the core. It does
// so only if this host has more ranks than cores and the launcher has bound none of them. Ranks are assigned to the
// cores in turn, by node rank. Otherwise Bind returns -1. With on false it returns -1, too, and the thread may run on
// all cores again. Threads that Go starts are not bound, because the driving thread is locked.
func Bind(t comm.Transport, on bool) int {
	own, ours := t.(*transport)
	if !ours {
		return -1
	}
	return int(C.fp_bind(C.int(b2i(on)), C.int(own.nodeRank)))
}

// Crowded reports whether this host has more ranks than cores that any of them may run on.
func (t *transport) Crowded() bool { return C.fp_crowded() != 0 }
