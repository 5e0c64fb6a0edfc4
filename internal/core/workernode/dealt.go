package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Batches may be dealt anew at some iterations (internal/policy/work). Then a worker starts no iteration whose batch it does not know.
// It waits for that as it waits for replies, between two iterations:
//
//	worker                                        rank 0
//	computes the last iteration before Until
//	driver: Measured ───────────────────────────► has the reports of all workers
//	starts iteration Until  ◄─── Dealt ────────── deals
//
// A stop does not wait for a batch. If a run ends while a worker waits, Dealt says, with Stop, that no batch follows:
// the worker ends, as after a stop.

// batches is what a worker knows of its batches. The zero value: it knows them all.
type batches struct {
	until  int64 // the first iteration whose batch is not known; 0: all are
	noMore bool  // no further batch will be dealt
}

// DealUntil tells the worker the first iteration whose batch it does not know. The driver calls it before the first
// input; later Dealt tells it.
func (w *Worker) DealUntil(iter int64) { w.batches.until = iter }

// dealt handles the message of batches.
func (w *Worker) dealt(m wire.Header, out []core.Effect) []core.Effect {
	if m.Flags&wire.Stop != 0 {
		w.batches.noMore = true
	} else {
		w.DealUntil(m.Clock)
	}
	return w.advance(out)
}

// lacksBatch says whether the worker does not know the batch of its next iteration.
func (w *Worker) lacksBatch() bool {
	return w.batches.until > 0 && !w.early.nextStarted && max(w.replies.next, w.iter+1) >= w.batches.until
}

// AwaitsBatch says whether the worker has computed all iterations whose batch it knows, and waits for the next one.
func (w *Worker) AwaitsBatch() bool {
	return w.lacksBatch() && !w.replies.stop && !w.batches.noMore && w.state == core.Waiting && w.replies.open == 0
}
