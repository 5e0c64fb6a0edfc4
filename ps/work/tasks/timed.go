package tasks

import (
	"time"

	"fluentps/ps/core"
	"fluentps/ps/work"
)

// timed ends the computing of an iteration when its time is over.
type timed struct {
	step  int32
	until time.Duration
}

func newTimed(s work.Spec, e Env) core.Work {
	return &timed{step: stepOf(s, e.Batches[e.Me]), until: s.Time}
}

func (p *timed) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	if ev.Kind != core.Starting {
		return out
	}
	own := ev.Task
	own.Grain, own.Until = p.step, p.until
	return append(out, core.Order{Kind: core.Assign, Task: own})
}
