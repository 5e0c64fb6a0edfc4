package train

import (
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/origin"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
)

// Exchange is the partner of an iteration: the servers, or the other ranks of the node (team.go, member.go). The goroutine
// that computes calls Prepare; the driver calls the other methods.
type Exchange interface {
	Readable(layer int) bool       // the layer's parameters are those of this iteration
	Writable(layer int) bool       // the layer's previous gradients were all sent
	Over() bool                    // the previous exchange is over: all layers are readable
	Forwarded(h wire.Header)       // forward has ended
	Prepare(layer int, iter int64) // the layer's gradients are final; LayerReady follows
	LayerReady(layer int)          // hands the layer's gradients over
	TaskDone()                     // the iteration has ended
}

// alone is the Exchange of a worker without members.
type alone struct{ w *Side }

func (x alone) Readable(layer int) bool       { return x.w.node.Readable(layer) }
func (x alone) Writable(layer int) bool       { return x.w.node.Writable(layer) }
func (x alone) Over() bool                    { return x.w.node.State() == core.Computing }
func (x alone) Forwarded(h wire.Header)       { x.w.step(core.Input{Kind: core.Forwarded, Msg: h}) }
func (x alone) Prepare(layer int, iter int64) { x.w.makeDelta(layer, iter, x.w.it.header.Samples) }
func (x alone) LayerReady(layer int)          { x.w.handOver(layer) }
func (x alone) TaskDone()                     { x.w.step(core.Input{Kind: core.TaskDone}) }

// ExchangeBy replaces pushes and pulls by another exchange, and returns the arenas for it. The worker then waits for no
// shard, and for nothing within an iteration.
func (w *Side) ExchangeBy(x Exchange) (params, grads *comm.Buf) {
	w.exchange, w.exchangeAfter = x, true
	w.node.Counts.WaitedLast, w.node.Counts.Cached = nil, nil
	return w.arenas.params, w.arenas.grads
}

// Iterate computes an iteration on the calling goroutine.
func (w *Side) Iterate(iter int64) {
	w.node.Counts.Started++
	w.site.start(w.wholeTask(iter))
	w.site.run()
}

// wholeTask is a whole iteration of the worker's own.
func (w *Side) wholeTask(iter int64) core.Task {
	return core.Task{Owner: int32(w.me), Parts: 1, Iter: iter}
}

// Exchanged ends the worker's wait for an exchange.
func (w *Side) Exchanged(now time.Duration) {
	w.idle.lastHeader = now
	w.endWait(now)
}

// Stepped counts the time of an optimizer step that the worker took itself.
func (w *Side) Stepped(took time.Duration) { w.counters.spans.Add(metrics.Fold, took) }

// End ends the training time of the worker, which lasted wall.
func (w *Side) End(wall time.Duration) {
	w.done = true
	w.counters.spans.Wall = wall
}

// Pieces returns the pieces of a layer, in arena order.
func (w *Side) Pieces(layer int) []int32 { return w.pieces[layer] }

// Waits says whether the rank computes nothing at present, and since when.
func (w *Side) Waits() (since time.Duration, yes bool) { return w.idle.from, w.idle.on }

// Me is the worker's index; for a member it is its leader's.
func (w *Side) Me() int { return w.me }

// Index is the rank's index among the ranks that compute.
func (w *Side) Index() int { return w.index }

// Timeline records what the worker does; nil: nothing is recorded.
func (w *Side) Timeline() *timeline.Worker { return w.o.Timeline }

// Records holds the times of the worker's iterations.
func (w *Side) Records() *timings.Recorder { return &w.counters.records }

// Over says that the worker has nothing left to do.
func (w *Side) Over() bool { return w.done && !w.deltas.own.isActive() }

// Ready says that the goroutine that drives must call Run.
func (w *Side) Ready() bool { return w.site.ready() }

// Run computes the iteration that was started.
func (w *Side) Run() { w.site.run() }

// Report is what a worker reports at the end of training.
type Report struct {
	Worker     int // index; for a member, its leader's
	Index      int // among the ranks that compute
	Member     bool
	Spans      metrics.Spans
	Iterations int64
	Steps      int64 // on parameters of the worker's own; 0: every step is an exchange
	Samples    int64
	Clipped    int64 // gradients that were clipped, since this process runs
	Gradients  int64 // that could be; 0: none is
	Threads    int64 // of the kernels, over all iterations; 0: as configured
	LeadMax    int64
	WaitedLast []int64
	Records    int   // number of iterations whose times are kept
	LeftOut    int64 // number of iterations whose times found no room
	Cached     []int64
	Pace       *metrics.Pace
	Hash       string // of the parameters, if every rank has all of them
	Findings   []origin.Finding
}

// clipped counts the gradients that this rank has clipped: its pushes, or the steps of its own. A member of a team clips none of a push.
func (w *Side) clipped() (clipped, of int64) {
	switch {
	case w.deltas.host != nil:
		return w.deltas.host.own.Clipped()
	case w.deltas.own != nil:
		return w.deltas.own.own.Clipped()
	}
	return w.it.clip.Counts()
}

// Report returns the worker's report at the end of training.
func (w *Side) Report() *Report {
	rep := &Report{Worker: w.me, Index: w.index, Spans: w.counters.spans, Samples: w.counters.samples,
		Threads: w.counters.threads, Records: w.counters.records.Len(), LeftOut: w.counters.records.LeftOut,
		Pace: &w.counters.pace, Findings: w.counters.found.List()}
	if w.deltas.own != nil {
		rep.Steps = w.deltas.own.own.Steps()
	}
	rep.Clipped, rep.Gradients = w.clipped()
	if n := w.node; n != nil {
		rep.Iterations, rep.LeadMax, rep.WaitedLast, rep.Cached = n.Counts.Started, n.Counts.LeadMax, n.Counts.WaitedLast, n.Counts.Cached
	} else {
		rep.Iterations, rep.Member = w.member.started, true
	}
	return rep
}

// hurries says whether backward may follow on forward without another word: all of the exchange before is over.
func (it *iteration) hurries() bool {
	if !it.mayHurry {
		return false
	}
	it.mayHurry = false
	it.awaitAllReadable() // which is what comes behind forward anyway
	return it.allReadable && it.allWritable
}
