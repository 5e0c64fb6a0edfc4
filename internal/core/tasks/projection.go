package tasks

import (
	"slices"
	"time"

	"fluentps/internal/core"
)

// The straggler projection of epsp: what the worker measures of itself, and how long an iteration takes everybody.

// measure follows the speed from step to step of whatever the worker computes. The last step of a task also pushes,
// so it counts only where a task has no other. Samples and times are summed apart: a mean of speeds would believe a
// step that took no time.
func (p *epsp) measure(ev *core.WorkEvent) {
	m := &p.meter
	if t := &ev.Task; !m.isOn || t.Owner != m.task.Owner || t.Part != m.task.Part || t.Iter != m.task.Iter {
		m.isOn, m.task, m.steps, m.samples = true, *t, 0, int64(t.From)
	}
	if ev.Kind == core.Stepped || m.steps == 1 {
		if took := (ev.At - m.at).Seconds(); m.steps > 0 {
			m.sum, m.seconds = m.sum+float64(m.samples-m.from), m.seconds+took
		}
	}
	if m.seconds > 0 && m.sum > 0 {
		p.speeds[p.me] = m.sum / m.seconds
	}
	m.at, m.from, m.samples, m.steps = ev.At, m.samples, ev.Samples, m.steps+1
	m.isOn = ev.Kind == core.Stepped
}

// decay makes the last iteration weigh `rate` in the worker's speed.
func (p *epsp) decay() {
	p.meter.sum, p.meter.seconds, p.meter.isOn = p.meter.sum*(1-p.rate), p.meter.seconds*(1-p.rate), false
}

// meter measures a worker's speed.
type meter struct {
	sum, seconds float64 // samples, and the time that they took, of the iterations so far
	isOn         bool
	task         core.Task
	steps        int
	at           time.Duration // when the current step began
	from         int64         // the first sample of the current step
	samples      int64         // the first sample behind it
}

// speed is what the worker computes at now: less than measured, if the current step takes longer than it should.
func (p *epsp) speed() float64 {
	u := p.speeds[p.me]
	if took, n := (p.now - p.meter.at).Seconds(), float64(p.meter.samples-p.meter.from); p.meter.isOn && took > 0 &&
		n > 0 && (u == 0 || n/took < u) {
		return n / took
	}
	return u
}

// projected is how long the iteration takes, if the worker computes what is left at its speed.
func (p *epsp) projected() time.Duration {
	u := p.speed()
	if u == 0 {
		return p.now - p.started
	}
	return p.now - p.started + seconds(float64(p.end-p.begun)/u)
}

// usual is how long a worker takes for an iteration as far as is known; at least so far, if it is not known to be idle.
func (p *epsp) usual(w int) time.Duration {
	switch {
	case p.finished[w] >= p.iter:
		return p.took[w]
	case p.speeds[w] == 0:
		return p.now - p.started
	}
	return max(p.now-p.started, seconds(float64(p.batches[w])/p.speeds[w]))
}

// isStraggler compares the projection with the median of all workers, the lower one in the middle.
func (p *epsp) isStraggler() bool {
	var all []time.Duration
	for w := range p.batches {
		switch {
		case int32(w) == p.me:
			all = append(all, p.projected())
		case !p.gone[w]:
			all = append(all, p.usual(w))
		}
	}
	slices.Sort(all)
	return float64(p.projected()) > float64((1+p.alpha)*float64(all[(len(all)-1)/2]))
}
