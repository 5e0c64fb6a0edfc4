package train

import (
	"time"

	"fluentps/configs"
)

// slowness is the extra computing time that faults add to one worker. The time that a fault asks for is known when the
// iteration ends, but the pause comes in its middle. So a pause is an estimate, and the difference (asked for but not
// slept, or slept too long) is carried over to the next pauses. A carried-over surplus shortens a pause by half at most:
// else the worker would not be slow for a while. Over a run the time slept is the time asked for.
type slowness struct {
	faults       []configs.Slow
	owed         time.Duration             // asked for by the iterations so far and not slept; negative: sleeps took longer
	afterForward [historyMax]time.Duration // computing after the forward pass, of the last iterations (a ring)
	n            int                       // number of iterations so far
}

// historyMax is how many iterations due looks at. It takes the shortest: one that the system held up predicts nothing.
const historyMax = 4

// due returns how long to pause in iteration iter, whose forward pass took forward.
func (s *slowness) due(iter int64, forward time.Duration) time.Duration {
	if len(s.faults) == 0 {
		return 0
	}
	rest := time.Duration(0)
	for k := range min(s.n, historyMax) {
		if b := s.afterForward[k]; k == 0 || b < rest {
			rest = b
		}
	}
	asked := s.asked(iter, forward+rest)
	return max(asked/2, asked+s.owed)
}

// finished records an iteration that computed for own in all, without the time slept.
func (s *slowness) finished(iter int64, forward, own, slept time.Duration) {
	if len(s.faults) == 0 {
		return
	}
	s.afterForward[s.n%historyMax] = max(0, own-forward)
	s.n++
	asked := s.asked(iter, own)
	s.owed = max(s.owed+asked-slept, -oversleptMax*asked)
}

// oversleptMax is the largest surplus of sleep that is carried over, in pauses of the last iteration. A longer surplus
// comes from a process or machine that was stopped, and says nothing of the next pauses.
const oversleptMax = 64

// asked returns what the faults add to an iteration that takes own to compute.
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

// pauseSpin is the end of a pause that is spun, not slept: a sleep ends some 60 us late, and then another process may have
// the core.
const pauseSpin = 100 * time.Microsecond

// napMax is the rest of a long sleep that nap takes over from the Go timer, which may be a millisecond late.
const napMax = 2 * time.Millisecond

// sleepUntil sleeps until now returns end or more.
func sleepUntil(now func() time.Duration, end time.Duration) {
	for {
		switch d := end - now(); {
		case d <= 0:
			return
		case d > napMax:
			time.Sleep(d - napMax)
		default:
			nap(d)
		}
	}
}
