package coordinate

import (
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/evaluate"
)

// online evaluates snapshots on rank 0 while training goes on: one at a time, in order.
type online struct {
	l      *Lead
	e      *evaluate.Evaluator
	busy   bool
	closed bool          // training is over: what is left is for all ranks
	i      int           // the next of looks.complete to look at
	took   time.Duration // spent evaluating

	checkpoint string // that is to be looked at when busy ends, or is; "": none
	judging    bool   // it is
	best       best
}

// next starts on the next snapshot that is complete, if nothing is being looked at.
func (o *online) next() {
	l := o.l
	switch {
	case l.end.reason != "" && o.checkpoint != "" && !o.judging: // nobody needs to know any more
		o.judged()
	case o.busy || o.closed || l.end.reason != "":
	case o.checkpoint != "":
		o.busy, o.judging = true, true
		go o.judge()
	case o.i < len(l.looks.complete):
		o.busy = true
		o.e.Fetch(l.looks.complete[o.i], func() { go o.look() })
	}
}

func (o *online) look() {
	r := o.l.r
	defer r.station.Guard()
	start := time.Now()
	s := o.e.Whole()
	took := time.Since(start)
	r.station.Transport.Post(func() {
		o.took += took
		o.busy = false
		l := o.l
		if r.Halted.Load() {
			return
		}
		k := l.looks.complete[o.i]
		l.evaluated(l.looks.marks[k], s.Loss, s.Correct, int64(r.station.Set.Test.Rows()))
		if l.looks.target != nil && !r.stopping() {
			r.stopNow()
		}
		o.i++
		for _, server := range r.station.Keepers() {
			h := wire.SnapshotLooked(k)
			r.station.Net.Send(server, &h)
		}
		o.next()
	})
}
