package coordinate

import (
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/evaluate"
)

// online evaluates snapshots during training, one at a time, in order: on rank 0, or where worker 0 is if only workers have the model.
type online struct {
	l         *Lead
	e         *evaluate.Evaluator // nil: another rank evaluates
	at        int                 // that rank
	busy      bool                // an evaluation is in progress
	closed    bool                // training is over: all ranks evaluate the rest together
	nextIndex int                 // of evaluations.complete: the next one to evaluate
	evalTime  time.Duration       // spent evaluating

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
		if o.e == nil {
			h := wire.CheckpointToEvaluate(checkpoint.NumberOf(o.checkpoint))
			l.station.Net.Send(o.at, &h)
			return
		}
		go o.judge()
	case o.nextIndex < len(l.evals.complete):
		o.busy = true
		if o.e == nil {
			h := wire.SnapshotToEvaluate(l.evals.complete[o.nextIndex])
			l.station.Net.Send(o.at, &h)
			return
		}
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
		o.evaluated(s, took)
	})
}

// evaluated takes the result of the evaluation in progress, and starts the next one.
func (o *online) evaluated(s evaluate.Sum, took time.Duration) {
	l, r := o.l, o.l.r
	o.evalTime += took
	o.busy = false
	if r.Halted.Load() {
		return
	}
	k := l.evals.complete[o.nextIndex]
	l.evaluated(l.evals.marks[k], s)
	if l.evals.targetReachedS != nil && !r.stopping() {
		r.stopNow()
	}
	o.nextIndex++
	for _, server := range r.station.Keepers() {
		h := wire.SnapshotLooked(k)
		r.station.Net.Send(server, &h)
	}
	o.next()
}

// OpenOnline makes what evaluates during training, on rank 0 and on the rank that evaluates for it.
func (r *Run) OpenOnline() error {
	st := r.station
	if st.Config.Evaluate.Where != "online" || st.Set.Test.Rows() == 0 {
		return nil
	}
	at := 0
	if ranks := st.Evaluators(); !slices.Contains(ranks, 0) {
		at = ranks[0]
	}
	var e *evaluate.Evaluator
	if st.Me == at {
		var err error
		if e, err = evaluate.New(st, evaluate.Options{Device: r.o.Device, Halted: &r.Halted}); err != nil {
			return err
		}
	}
	switch {
	case st.Me == 0:
		r.Lead.evals.online = &online{l: r.Lead, e: e, at: at}
	case e != nil:
		r.answers = &answers{r: r, e: e}
	}
	return nil
}

// answers evaluates what rank 0 asks for, between the steps of its worker.
type answers struct {
	r *Run
	e *evaluate.Evaluator
}

// answer evaluates a snapshot or a checkpoint. Rank 0 asks for one at a time.
func (a *answers) answer(v wire.Evaluation) {
	if v.OfCheckpoint() {
		go a.evaluate(v)
		return
	}
	a.e.Fetch(v.Index, func() { go a.evaluate(v) })
}

func (a *answers) evaluate(v wire.Evaluation) {
	st := a.r.station
	defer st.Guard()
	if v.OfCheckpoint() {
		if err := take(a.e, checkpoint.Dir(a.r.Folder.Dir, v.Index)); err != nil { // no more is lost than a best checkpoint
			st.Transport.Post(func() {
				st.Log.Warn("the best checkpoint: " + err.Error())
				v.Loss = math.NaN()
				h := v.Header()
				st.Net.Send(0, &h)
			})
			return
		}
	}
	from := time.Now()
	s, err := a.e.Alone()
	took := time.Since(from)
	st.Transport.Post(func() {
		if err != nil {
			st.Net.Fail(err)
			return
		}
		v.Loss, v.Correct, v.Took = s.Loss, s.Correct, took
		h := v.Header()
		st.Net.Send(0, &h)
	})
}
