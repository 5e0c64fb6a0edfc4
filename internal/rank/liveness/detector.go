package liveness

import "time"

// pollEvery is how often a rank listens for heartbeats.
const pollEvery = 250 * time.Millisecond

// beatMax is the longest time between two beats of a rank, beatsOfLimit the number of beats within stall.peer.
const (
	beatMax      = 5 * time.Second
	beatsOfLimit = 10
)

// firstLimits is how many times stall.peer a rank has for its first beat: programs and configurations are read from
// file systems that may be slow when all ranks read at once.
const firstLimits = 10

// PauseMin is the time between two polls from which on this rank counts as not running: stopped, or not scheduled.
const PauseMin = 5 * time.Second

// detector counts how long ranks have been silent. It counts only time in which this rank ran and could listen: a rank
// that was itself stopped must not report others for that time. It reads no clock.
type detector struct {
	limit          time.Duration   // 0: silence is counted without effect
	at             time.Duration   // time of the last poll
	beat           time.Duration   // time of the next beat
	silent         []time.Duration // by peer; below 0 before the first beat
	unableToListen time.Duration   // how long this rank has not been able to listen
}

func newDetector(limit time.Duration, peers int, now time.Duration) *detector {
	v := &detector{limit: limit, at: now, beat: now, silent: make([]time.Duration, peers)}
	for i := range v.silent {
		v.silent[i] = -(firstLimits - 1) * limit
	}
	return v
}

// poll adds the time since the last poll to the silence of every peer or, if this rank could not listen, to
// unableToListen. It returns how long this rank did not run, 0 if it did.
func (v *detector) poll(now time.Duration, listened bool) (paused time.Duration) {
	passed := now - v.at
	v.at = now
	if passed >= PauseMin {
		paused = passed
	}
	passed = min(passed, 2*pollEvery)
	if !listened {
		v.unableToListen += passed
		return paused
	}
	v.unableToListen = 0
	for i := range v.silent {
		v.silent[i] += passed
	}
	return paused
}

// heard ends the silence of a peer.
func (v *detector) heard(i int) { v.silent[i] = 0 }

// due returns whether to beat now.
func (v *detector) due() bool {
	if v.limit == 0 || v.at < v.beat {
		return false
	}
	v.beat = v.at + min(beatMax, v.limit/beatsOfLimit)
	return true
}

// lost returns the peers that have been silent for the limit.
func (v *detector) lost() (list []int) {
	for i, d := range v.silent {
		if v.limit > 0 && d >= v.limit {
			list = append(list, i)
		}
	}
	return list
}

// stuck returns whether this rank has not been able to listen for the limit.
func (v *detector) stuck() bool { return v.limit > 0 && v.unableToListen >= v.limit }
