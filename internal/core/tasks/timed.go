package tasks

import (
	"time"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// timed ends the computing of an iteration when its time is over. The first step always runs, so a push has at least one
// sample: then no scheme divides by zero samples, and a worker that is far too slow still counts for a little.
type timed struct {
	step  int32
	until time.Duration // 0: no limit
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
