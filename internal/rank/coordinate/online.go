package coordinate

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/rank/evaluate"
)

// online evaluates snapshots on rank 0 during training: one at a time, in order.
type online struct {
	l         *Lead
	e         *evaluate.Evaluator
	busy      bool          // an evaluation is in progress
	closed    bool          // training is over: all ranks evaluate the rest together
	nextIndex int           // of evaluations.complete: the next one to evaluate
	evalTime  time.Duration // spent evaluating

	checkpoint string // to be judged after the evaluation in progress, or being judged; "": none
	judging    bool   // it is being judged
	best       best
}

// next starts the next evaluation, if none is in progress.
func (o *online) next() {
	l := o.l
	switch {
	case l.end.reason != "" && o.checkpoint != "" && !o.judging: // the run ends, so the verdict is no longer needed
		o.judged()
	case o.busy || o.closed || l.end.reason != "":
	case o.checkpoint != "":
		o.busy, o.judging = true, true
		go o.judge()
	case o.nextIndex < len(l.evals.complete):
		o.busy = true
		o.e.Fetch(l.evals.complete[o.nextIndex], func() { go o.evaluate() })
	}
}

func (o *online) evaluate() {
	r := o.l.r
	defer r.station.Guard()
	start := time.Now()
	s, err := o.e.Alone()
	took := time.Since(start)
	r.station.Transport.Post(func() {
		if err != nil {
			r.station.Net.Fail(err)
			return
		}
		o.evalTime += took
		o.busy = false
		l := o.l
		if r.Halted.Load() {
			return
		}
		k := l.evals.complete[o.nextIndex]
		l.evaluated(l.evals.marks[k], s.Loss, s.Correct, int64(r.station.Set.Test.Rows()))
		if l.evals.targetReachedS != nil && !r.stopping() {
			r.stopNow()
		}
		o.nextIndex++
		for _, server := range r.station.Keepers() {
			h := wire.SnapshotLooked(k)
			r.station.Net.Send(server, &h)
		}
		o.next()
	})
}
