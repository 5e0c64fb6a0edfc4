package train

import "fluentps/ps/metrics"

// Report is what a worker reports at the end of training.
type Report struct {
	Worker     int // index; for a member, its leader's
	Index      int // among the ranks that compute
	Member     bool
	Spans      metrics.Spans
	Iterations int64
	Samples    int64
	LeadMax    int64
	WaitedLast []int64
	Records    int   // number of iterations whose times are kept
	LeftOut    int64 // number of iterations whose times found no room
	Cached     []int64
	Pace       *metrics.Pace
	Hash       string // of the parameters, if every rank has all of them
}

// Report returns the worker's report at the end of training.
func (w *Side) Report() *Report {
	rep := &Report{Worker: w.me, Index: w.index, Spans: w.counters.spans, Samples: w.counters.samples, Records: w.counters.records.Len(), LeftOut: w.counters.records.LeftOut, Pace: &w.counters.pace}
	if n := w.node; n != nil {
		rep.Iterations, rep.LeadMax, rep.WaitedLast, rep.Cached = n.Started, n.LeadMax, n.WaitedLast, n.Cached
	} else {
		rep.Iterations, rep.Member = w.member.started, true
	}
	return rep
}
