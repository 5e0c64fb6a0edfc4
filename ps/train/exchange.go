package train

import (
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// Exchange is what an iteration knows of those it is computed with: the servers, or the ranks of its node (team.go,
// member.go). Whoever computes calls Prepare; the driver calls the others.
type Exchange interface {
	Readable(layer int) bool       // its parameters are those of this iteration
	Writable(layer int) bool       // nothing of its last gradients is to be sent any more
	Over() bool                    // the exchange before is: all layers are readable
	Forwarded(h wire.Header)       // forward is over
	Prepare(layer int, iter int64) // the gradients of a layer are final, and about to be handed over
	LayerReady(layer int)          // they are handed over
	TaskDone()                     // the iteration is over
}

// alone is the Exchange of a worker without members.
type alone struct{ w *Side }

func (x alone) Readable(layer int) bool       { return x.w.node.Readable(layer) }
func (x alone) Writable(layer int) bool       { return x.w.node.Writable(layer) }
func (x alone) Over() bool                    { return x.w.node.State() == core.Computing }
func (x alone) Forwarded(h wire.Header)       { x.w.step(core.Input{Kind: core.Forwarded, Msg: h}) }
func (x alone) Prepare(layer int, iter int64) { x.w.makeDelta(layer, iter, int64(x.w.feed.batch.N)) }
func (x alone) LayerReady(layer int)          { x.w.handOver(layer) }
func (x alone) TaskDone()                     { x.w.step(core.Input{Kind: core.TaskDone}) }

// ExchangeBy puts another exchange in the place of pushes and pulls, and gives it the arenas. There are no shards to wait for then, nor
// anything within an iteration.
func (w *Side) ExchangeBy(x Exchange) (params, grads *comm.Buf) {
	w.with, w.nothing = x, true
	w.node.WaitedLast, w.node.Cached = nil, nil
	return w.arenas.params, w.arenas.grads
}

// Iterate computes an iteration on the goroutine that calls it.
func (w *Side) Iterate(iter int64) {
	w.node.Started++
	w.site.start(w.whole(iter))
	w.site.run()
}

// whole is all of an iteration of the worker's.
func (w *Side) whole(iter int64) core.Task {
	return core.Task{Owner: int32(w.me), Parts: 1, Iter: iter}
}

// Exchanged ends the wait of a worker for what was exchanged.
func (w *Side) Exchanged(now time.Duration) {
	w.idle.lastHead = now
	w.waited(now)
}

// Stepped counts the time of an optimizer step that the worker has taken itself.
func (w *Side) Stepped(took time.Duration) { w.books.spans.Add(metrics.Fold, took) }

// End closes the books of the worker's training time.
func (w *Side) End(wall time.Duration) {
	w.done = true
	w.books.spans.Wall = wall
}

// Pieces are those of a layer, in arena order.
func (w *Side) Pieces(layer int) []int32 { return w.pieces[layer] }

// Waits says since when nothing has been computed.
func (w *Side) Waits() (since time.Duration, yes bool) { return w.idle.from, w.idle.on }

// Me is the worker's index; of a member, its leader's.
func (w *Side) Me() int { return w.me }

// Index is the worker's among the ranks that compute.
func (w *Side) Index() int { return w.index }

// Records are the times of its iterations.
func (w *Side) Records() *metrics.Recorder { return &w.books.records }

// Over says that the worker has nothing to do any more.
func (w *Side) Over() bool { return w.done }

// Ready says that the goroutine which drives must run an iteration.
func (w *Side) Ready() bool { return w.site.ready() }

// Run runs it.
func (w *Side) Run() { w.site.run() }
