//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"time"

	gompi "github.com/sbromberger/gompi"

	"fluentps/internal/comm"
)

// clock is the time since the start of the world, on rank 0's clock.
type clock struct { // the world's clock at base
	base  time.Time     // a reading of this process's monotonic clock
	start time.Duration // what the world's clock said then

	offset int64 // ns to add to this host's clock to read rank 0's, as measured at the start
	bound  int64 // ns of error that the last measurement may have
}

// ClockError implements comm.Clocked.
func (t *transport) ClockError() time.Duration { return time.Duration(t.clock.bound) }

func (c *clock) now() time.Duration { return c.start + time.Since(c.base) }

// clockRounds is the number of questions that each rank asks rank 0; the fastest answer counts.
const clockRounds = 16

// agreeOnClock measures the offset of this host's monotonic clock from rank 0's. Rank 0 reads its clock between
// question and answer, so half the round trip bounds the error. If the offset is within this bound, both ranks are on
// one host and share the clock.
func (t *transport) agreeOnClock() error {
	// Start of the world: rank 0's monotonic clock now.
	start := []int64{int64(C.fp_clock())}
	gompi.NewCommunicator(nil).BcastInt64s(start, 0)
	offset, err := t.clockOffset()
	if err != nil {
		return err
	}
	t.clock.offset = offset
	base, reading := readClocks()
	t.clock.base, t.clock.start = base, time.Duration(reading+offset-start[0])
	return t.Barrier()
}

// readClocks reads Go's clock, which gives no absolute time, and C's at one moment. The fastest of several tries
// counts, because this thread may lose its core between two readings.
func readClocks() (base time.Time, reading int64) {
	best := time.Duration(-1)
	for range clockRounds {
		before := time.Now()
		c := int64(C.fp_clock())
		if took := time.Since(before); best < 0 || took < best {
			best, base, reading = took, before.Add(took/2), c
		}
	}
	return base, reading
}

// SyncClock measures the offset again. Each of the two measurements may be wrong by half a round trip.
func (t *transport) SyncClock() (time.Duration, error) {
	offset, err := t.clockOffset()
	if err != nil {
		return 0, err
	}
	return time.Duration(t.clock.offset - offset), t.Barrier()
}

// clockOffset returns the ns to add to this host's clock to read rank 0's.
func (t *transport) clockOffset() (int64, error) {
	const ask, answer = comm.TagMax - 1, comm.TagMax
	buf, err := t.pool.Alloc(8)
	if err != nil {
		return 0, err
	}
	defer buf.Free()
	var failed error
	open := 0 // sends that have not completed
	check := func(d comm.Done) {
		if d.Err != nil && failed == nil {
			failed = d.Err
		}
	}
	if t.rank == 0 {
		left := clockRounds * (t.size - 1)
		answering := false
		for ; left > 0 && failed == nil; left-- {
			answering = true
			t.Irecv(comm.AnyPeer, comm.Ctl, ask, nil, 0, 0, func(d comm.Done) {
				check(d)
				binary.LittleEndian.PutUint64(buf.Bytes(), uint64(C.fp_clock()))
				t.Isend(d.Peer, comm.Ctl, answer, buf, 0, 8, func(d comm.Done) { check(d); answering = false })
			})
			if err := t.Drive(func() bool { return !answering }); err != nil {
				return 0, err
			}
		}
		return 0, failed
	}
	asked := func(d comm.Done) { open--; check(d) }
	var best, offset int64
	for round := range clockRounds {
		answered := false
		t.Irecv(0, comm.Ctl, answer, buf, 0, 8, func(d comm.Done) { check(d); answered = true })
		before := int64(C.fp_clock())
		open++
		t.Isend(0, comm.Ctl, ask, nil, 0, 0, asked)
		if err := t.Drive(func() bool { return answered }); err != nil {
			return 0, err
		}
		after := int64(C.fp_clock())
		if trip := after - before; round == 0 || trip < best {
			best = trip
			offset = int64(binary.LittleEndian.Uint64(buf.Bytes())) - (before + trip/2)
		}
	}
	if err := t.Drive(func() bool { return open == 0 }); err != nil {
		return 0, err
	}
	t.clock.bound = (best + 1) / 2
	if 2*max(offset, -offset) <= best {
		offset = 0
		if t.NodePeers()[0] == 0 { // ranks that share memory share the clock
			t.clock.bound = 0
		}
	}
	return offset, failed
}
