//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"fluentps/internal/comm"
	"fluentps/internal/comm/shm"
)

// hangBells has the ranks of each host wake each other: a rank that sleeps would else look for messages from time to time only. If the
// memory for that is missing, they do without.
func (t *transport) hangBells() error {
	w := &window{t: t, maps: map[int]mapping{}}
	own, failed := w.create(C.FP_BELL_BYTES)
	offers, err := t.agree(own, "shared memory in "+shm.Dir, failed)
	if err == nil {
		err = w.mapOthers(own, offers)
	}
	if errors.Is(err, comm.ErrNoMemory) { // on all ranks
		return w.drop()
	}
	if err != nil {
		return errors.Join(err, w.drop())
	}
	at := make([]unsafe.Pointer, t.size)
	for rank, m := range w.maps {
		at[rank] = m.at
	}
	// The pages stay mapped: a rank may ring, and any goroutine may post, until the process ends.
	if rc := C.fp_hang_bells(C.int(t.size), C.int(t.rank), &at[0]); rc != 0 {
		return errors.New(errorText(rc))
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("the file of a bell: %w", err)
	}
	return nil
}
