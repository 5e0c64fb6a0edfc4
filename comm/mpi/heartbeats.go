//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"time"

	"fluentps/comm"
)

// Beat is a synchronous send of one byte: it is complete when the other rank's Heard has taken it.
func (t *transport) Beat(to comm.Peer, word byte) bool {
	return !t.finished.Load() && C.fp_beat(C.int(to), C.int(word)) == 1
}

// Heard takes at most two bytes of each rank, so that it ends.
func (t *transport) Heard(f func(from comm.Peer, word byte)) bool {
	if t.finished.Load() {
		return false
	}
	for range 2 * t.size {
		var word C.int
		from := C.fp_heard(&word)
		if from < 0 {
			return from != C.FP_BUSY
		}
		f(comm.Peer(from), byte(word))
	}
	return true
}

// hearOut takes what others still beat, in place of Heard, until it is told that all ranks know of no beat that is on its way.
func (t *transport) hearOut(stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			t.Heard(func(comm.Peer, byte) {})
		}
	}
}

// lastBarrier is passed when nobody has a message of heartbeats on its way any more: each rank comes to it when its own
// were met.
func (t *transport) lastBarrier() error {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); t.hearOut(stop) }()
	defer func() { close(stop); <-done }()
	for C.fp_unmet() > 0 {
		t.Tick()
		time.Sleep(time.Millisecond)
	}
	return t.Barrier()
}
