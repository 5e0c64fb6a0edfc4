package liveness

import "time"

// lookEvery is how often a rank listens for heartbeats.
const lookEvery = 250 * time.Millisecond

// beatMax is the longest time between two beats of a rank, beatsOfLimit how many there are of it within stall.peer.
const (
	beatMax      = 5 * time.Second
	beatsOfLimit = 10
)

// firstLimits is how many times stall.peer a rank has for its first beat: programs and configurations come from file systems that
// may be slow when all ask at once.
const firstLimits = 10

// PauseMin is the time without a look at the clock from which on this rank was not running: stopped, or out of its turn.
const PauseMin = 5 * time.Second

// vigil counts how long ranks have been silent. It counts only time in which this one ran and could listen: a rank that was
// stopped itself must accuse nobody of what it slept through. It reads no clock.
type vigil struct {
	limit  time.Duration   // 0: silence is counted and means nothing
	at     time.Duration   // of the last look
	beat   time.Duration   // when the next beat is due
	silent []time.Duration // below 0: before the first beat
	deaf   time.Duration   // for so long this rank could not listen
}

func newVigil(limit time.Duration, peers int, now time.Duration) *vigil {
	v := &vigil{limit: limit, at: now, beat: now, silent: make([]time.Duration, peers)}
	for i := range v.silent {
		v.silent[i] = -(firstLimits - 1) * limit
	}
	return v
}

// look adds the time since the last look to the silence of every peer or, where this rank could not listen, to its own deafness.
// It returns how long this rank did not run, 0 if it did.
func (v *vigil) look(now time.Duration, listened bool) (paused time.Duration) {
	passed := now - v.at
	v.at = now
	if passed >= PauseMin {
		paused = passed
	}
	passed = min(passed, 2*lookEvery)
	if !listened {
		v.deaf += passed
		return paused
	}
	v.deaf = 0
	for i := range v.silent {
		v.silent[i] += passed
	}
	return paused
}

// heard ends the silence of a peer.
func (v *vigil) heard(i int) { v.silent[i] = 0 }

// due says whether to beat now.
func (v *vigil) due() bool {
	if v.limit == 0 || v.at < v.beat {
		return false
	}
	v.beat = v.at + min(beatMax, v.limit/beatsOfLimit)
	return true
}

// lost lists the peers that have been silent for too long.
func (v *vigil) lost() (list []int) {
	for i, d := range v.silent {
		if v.limit > 0 && d >= v.limit {
			list = append(list, i)
		}
	}
	return list
}

// stuck says that this rank could not listen for too long.
func (v *vigil) stuck() bool { return v.limit > 0 && v.deaf >= v.limit }
