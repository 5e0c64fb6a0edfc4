package train

import "fluentps/ps/metrics"

// Report is what a worker has to tell when training is over.
type Report struct {
	Worker     int // of a member, its leader's
	Index      int // among those that compute
	Member     bool
	Spans      metrics.Spans
	Iterations int64
	Samples    int64
	LeadMax    int64
	WaitedLast []int64
	Records    int   // iterations whose times are kept
	LeftOut    int64 // iterations whose times found no room
	Cached     []int64
	Pace       *metrics.Pace
	Hash       string // of the parameters, where every rank has all of them
}

// Report is what the worker has to tell when training is over.
func (w *Side) Report() *Report {
	rep := &Report{Worker: w.me, Index: w.index, Spans: w.books.spans, Samples: w.books.samples, Records: w.books.records.Len(), LeftOut: w.books.records.LeftOut, Pace: &w.books.pace}
	if n := w.node; n != nil {
		rep.Iterations, rep.LeadMax, rep.WaitedLast, rep.Cached = n.Started, n.LeadMax, n.WaitedLast, n.Cached
	} else {
		rep.Iterations, rep.Member = w.member.started, true
	}
	return rep
}
