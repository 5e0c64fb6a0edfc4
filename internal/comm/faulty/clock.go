package faulty

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"fluentps/internal/comm"
)

// Clock is what is wrong with the clock of a rank. The zero value is a right clock that is read at once.
type Clock struct {
	Off   time.Duration // what it differs from rank 0's from the start of the world; the measurement then did not see it
	Gain  float64       // seconds that it gains in a second
	Error time.Duration // what a measurement says of its own error
	Late  time.Duration // whoever reads it may lose the processor before, for at most so long
}

// timed is a Transport whose clock is wrong.
type timed struct {
	comm.Transport
	clock Clock
	reads atomic.Uint64
	seed  uint64
}

// lateEvery is the mean number of readings among which one is late.
const lateEvery = 8

// Now implements comm.Transport.
func (t *timed) Now() time.Duration {
	if t.clock.Late > 0 {
		if r := rand.New(rand.NewPCG(t.seed, t.reads.Add(1))); r.IntN(lateEvery) == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(t.clock.Late))))
		}
	}
	now := t.Transport.Now()
	return now + t.clock.Off + time.Duration(t.clock.Gain*float64(now))
}

// SyncClock implements comm.Transport: it sees what the clock has gained, and again not what it differed from the start.
func (t *timed) SyncClock() (time.Duration, error) {
	if _, err := t.Transport.SyncClock(); err != nil {
		return 0, err
	}
	return time.Duration(t.clock.Gain * float64(t.Transport.Now())), nil
}

// ClockError implements comm.Clocked.
func (t *timed) ClockError() time.Duration { return t.clock.Error }

// WithClocks gives the ranks of a world in one process these clocks.
func WithClocks(world []comm.Transport, seed uint64, clocks ...Clock) []comm.Transport {
	wrapped := make([]comm.Transport, len(world))
	for i, inner := range world {
		wrapped[i] = inner
		if i < len(clocks) {
			wrapped[i] = &timed{Transport: inner, clock: clocks[i], seed: seed ^ uint64(i)<<32}
		}
	}
	return wrapped
}
