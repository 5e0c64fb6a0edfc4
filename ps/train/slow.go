package train

import (
	"time"

	"fluentps/configs"
)

// slowness is what faults add to the computing of one worker. What they ask of an iteration is known when that is over,
// and it is paused in its middle: so a pause is what is known by then, and what is left, or was slept too long, counts against
// the next ones, by half of a pause at most, or the worker would not be slow for a while. Over a run the time that was slept is
// the time that was asked for.
type slowness struct {
	faults []configs.Slow
	open   time.Duration            // asked for by the iterations so far and not slept; negative: sleeps took longer
	behind [behindMax]time.Duration // what the last iterations computed after their forward pass, in turn
	n      int                      // iterations so far
}

// behindMax iterations are looked at, and the shortest is taken: one that the system held up says nothing of the next.
const behindMax = 4

// due is how long to pause in iteration iter, whose forward pass took so long.
func (s *slowness) due(iter int64, forward time.Duration) time.Duration {
	if len(s.faults) == 0 {
		return 0
	}
	behind := time.Duration(0)
	for k := range min(s.n, behindMax) {
		if b := s.behind[k]; k == 0 || b < behind {
			behind = b
		}
	}
	asked := s.asked(iter, forward+behind)
	return max(asked/2, asked+s.open)
}

// over takes it that the iteration has computed for own in all, without the time that it slept.
func (s *slowness) over(iter int64, forward, own, slept time.Duration) {
	if len(s.faults) == 0 {
		return
	}
	s.behind[s.n%behindMax] = max(0, own-forward)
	s.n++
	asked := s.asked(iter, own)
	s.open = max(s.open+asked-slept, -forgiven*asked)
}

// forgiven pauses are the most that a sleep may have been too long for the next ones to make up for it: one in which the process
// was stopped, or the machine, says nothing of these.
const forgiven = 64

// asked is what the faults add to an iteration that computes for own by itself.
func (s *slowness) asked(iter int64, own time.Duration) (d time.Duration) {
	for _, f := range s.faults {
		if iter < f.From || f.Until > 0 && iter >= f.Until {
			continue
		}
		d += f.Sleep
		if f.Factor > 1 {
			d += time.Duration((f.Factor - 1) * float64(own))
		}
	}
	return d
}

// pauseEnd is the end of a pause that is not slept: a sleep ends some 60 us late, and then comes whoever else has the core.
const pauseEnd = 100 * time.Microsecond

// napFrom is what is left of a long sleep when it is no longer a Go timer's, which may be a millisecond late.
const napFrom = 2 * time.Millisecond

// sleepUntil sleeps until a clock shows a time.
func sleepUntil(now func() time.Duration, end time.Duration) {
	for {
		switch d := end - now(); {
		case d <= 0:
			return
		case d > napFrom:
			time.Sleep(d - napFrom)
		default:
			nap(d)
		}
	}
}
