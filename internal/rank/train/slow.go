package train

import (
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
)

// slowness is the extra time that faults add to one worker. What a factor asks for is known when the iteration ends, but the sleep
// comes in its middle. So a sleep is an estimate, and the difference (asked for but not slept, or slept too long) is carried
// over to the next sleeps. A carried-over surplus shortens a sleep by half at most: else the worker would not be slow for a while.
// Over a run the time slept is the time asked for.
type slowness struct {
	to           straggler.Worker
	pauses       []configs.FaultPause      // that are still to come, in order of their times
	owed         time.Duration             // asked for by the iterations so far and not slept; negative: sleeps took longer
	usual        time.Duration             // the most that one of the last iterations asked for
	afterForward [historyMax]time.Duration // computing after the forward pass, of the last iterations (a ring)
	n            int                       // number of iterations so far
}

// historyMax is how many iterations due looks at. It takes the shortest: one that the system held up predicts nothing.
const historyMax = 4

// due returns how long to pause in iteration iter, whose forward pass took forward.
func (s *slowness) due(iter int64, forward time.Duration) time.Duration {
	if s.to.None() {
		return 0
	}
	rest := time.Duration(0)
	for k := range min(s.n, historyMax) {
		if b := s.afterForward[k]; k == 0 || b < rest {
			rest = b
		}
	}
	asked := s.to.Within(iter).Of(forward + rest)
	return max(asked/2, asked+s.owed)
}

// before returns how long to sleep after an update, before iteration iter, and what was asked for.
func (s *slowness) before(iter int64) (d, asked time.Duration) {
	if asked = s.to.Before(iter); asked == 0 {
		return 0, 0
	}
	return max(asked/2, asked+s.owed), asked
}

// settle carries over what was asked for and not slept.
func (s *slowness) settle(asked, slept time.Duration) {
	s.usual = max(asked, s.usual-s.usual/historyMax)
	s.owed = max(s.owed+asked-slept, -oversleptMax*s.usual)
}

// paused returns how long the worker pauses now, at a training time; resumed is that at which this run resumed, and earlier pauses are
// over. The worker looks at a few places of an iteration only, so a pause may begin late. It has its length nevertheless.
func (s *slowness) paused(now, resumed time.Duration) (length time.Duration) {
	for len(s.pauses) > 0 && s.pauses[0].At <= now+length {
		if s.pauses[0].At >= resumed {
			length += s.pauses[0].For
		}
		s.pauses = s.pauses[1:]
	}
	return length
}

// finished records an iteration that computed for own in all, without the time slept. Within it, between forward and backward, the worker
// slept for slept.
func (s *slowness) finished(iter int64, forward, own, slept time.Duration) {
	if s.to.None() {
		return
	}
	s.afterForward[s.n%historyMax] = max(0, own-forward)
	s.n++
	s.settle(s.to.Within(iter).Of(own), slept)
}

// oversleptMax is the largest surplus of sleep that is carried over, in sleeps of the last iteration. A longer surplus
// comes from a process or machine that was stopped, and says nothing of the next sleeps.
const oversleptMax = 64

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

// sleepLate sleeps before a step that waits for nothing, if a fault asks for it.
func (w *Side) sleepLate(it *iteration, index int64) {
	it.pause()
	if d, asked := w.slow.before(index); d > 0 {
		it.sleep(d, &it.timing.late)
		w.slow.settle(asked, it.timing.late)
	}
}

// stepped adds the times of a step to those of its round.
func (w *Side) stepped(it *iteration, index int64, sum *timing) {
	s := &it.timing
	s.conclude(w.station.Transport.Now())
	computing := s.end - s.start - s.waited - s.pushing
	injected := s.late + s.slept + s.paused
	w.slow.finished(index, s.forward, computing-injected, s.slept)
	w.counters.computeUsual = smooth(w.counters.computeUsual, computing-injected)
	sum.forward += computing // of the round; forward alone matters to a step only
	sum.late, sum.slept, sum.paused = sum.late+s.late, sum.slept+s.slept, sum.paused+s.paused
	sum.waited, sum.pushing = sum.waited+s.waited, sum.pushing+s.pushing
}
