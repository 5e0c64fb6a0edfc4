package sidestest

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Lender is a minimal Work: worker 1 computes the end of worker 0's batch in every iteration, at most two samples at a
// time.
type Lender struct {
	Me     int32
	iter   int64 // the last iteration that was started
	given  []core.Task
	Helped *int // parts that this worker has computed of others' batches
}

// Step is that of core.Work.
func (l *Lender) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		l.iter = ev.Task.Iter
		if l.Me == 0 {
			own := core.Task{Owner: 0, Iter: l.iter, Parts: 2, To: 5, Grain: 2}
			out = append(out, core.Order{Kind: core.Assign, Task: own},
				core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: l.iter, Samples: 5}})
		}
	case core.Came:
		l.given = append(l.given, core.Task{Owner: ev.Msg.Worker, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: int32(ev.Msg.Samples), Grain: 2})
	case core.Computed:
		if ev.Task.Owner != l.Me {
			*l.Helped++
		}
	}
	// computed with the parameters of that iteration
	for len(l.given) > 0 && l.given[0].Iter <= l.iter && !(ev.Kind == core.Starting && l.Me == l.given[0].Owner) {
		out = append(out, core.Order{Kind: core.Assign, Task: l.given[0]})
		l.given = l.given[1:]
	}
	return out
}
