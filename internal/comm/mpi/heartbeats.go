//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"time"

	"fluentps/internal/comm"
)

// Beat is a synchronous send of one byte: it completes when the other rank's Heard has received it.
func (t *transport) Beat(to comm.Peer, word byte) bool {
	return !t.finished.Load() && C.fp_beat(C.int(to), C.int(word)) == 1
}

// Heard receives at most two bytes per rank, so that it ends.
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

// drainHeartbeats receives heartbeats in place of Heard until stop is closed: when no rank has one in flight.
func (t *transport) drainHeartbeats(stop <-chan struct{}) {
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

// lastBarrier passes when no rank has a heartbeat in flight any more: each rank enters it when its own were received.
func (t *transport) lastBarrier() error {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); t.drainHeartbeats(stop) }()
	defer func() { close(stop); <-done }()
	for C.fp_unmet() > 0 {
		t.Tick()
		time.Sleep(time.Millisecond)
	}
	return t.Barrier()
}
