//go:build mpi

package mpi

// #include "shim.h"
import "C"

import "fluentps/comm"

// Bind keeps this thread, which must be the one that drives t, on one core, and returns its number: where this host has more
// ranks than cores, and the launcher has bound none of them. Ranks are dealt to the cores in turn, by node rank. Elsewhere,
// and with on false, it returns -1; with on false the thread may run on all cores again. Threads that Go starts are not
// bound, for the thread that drives is locked.
func Bind(t comm.Transport, on bool) int {
	own, ours := t.(*transport)
	if !ours {
		return -1
	}
	return int(C.fp_bind(C.int(b2i(on)), C.int(own.nodeRank)))
}
