package timeline

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
)

// Worker follows the working side of a rank. The goroutine that computes calls the methods of Computing. The driver calls the others.
// A nil Worker does nothing.
type Worker struct {
	Computing
	rank         *Rank
	me           int32
	plan         *shard.Plan
	shards       []exchange
	pushes, gets lanes
}

// exchange is the push and the pull of a shard that are open.
type exchange struct {
	push, pull     time.Duration // when they began
	pushed, pulled int64         // their iterations; -1: not open
	owner          int32         // whose iteration the push counts for
	arrow          bool          // arrows lead from the push: it is the first one of the worker's own iteration
	led            int64         // the iteration of the newest push with arrows
	unsent         int           // pieces of the push
	left           time.Duration // when the last piece so far was handed to the transport
	missing        int           // pieces of the reply
	replied        bool
}

// NewWorker follows worker me.
func NewWorker(r *Rank, me int32, plan *shard.Plan) *Worker {
	if r == nil {
		return nil
	}
	w := &Worker{Computing: Computing{rank: r, me: me}, rank: r, me: me, plan: plan, shards: make([]exchange, len(plan.Shards))}
	for s := range w.shards {
		w.shards[s].pushed, w.shards[s].pulled, w.shards[s].led = -1, -1, -1
	}
	return w
}

// Stepped is told of every step of the worker's node, at a time of the clock of all ranks.
func (w *Worker) Stepped(in *core.Input, out []core.Effect, now time.Duration) {
	if w == nil {
		return
	}
	switch in.Kind {
	case core.PieceSent:
		w.sent(w.plan.Pieces[in.Piece].Shard, now)
	case core.PieceLanded:
		w.landed(w.plan.Pieces[in.Piece].Shard, 1, now)
	case core.Arrived:
		if in.Msg.Kind == wire.Reply {
			w.shards[in.Msg.Shard].replied = true
			w.landed(in.Msg.Shard, 0, now)
		}
	}
	for i := range out {
		e := &out[i]
		switch {
		case e.Kind == core.Send && e.Msg.Kind == wire.Push:
			w.begin(&e.Msg, now)
		case e.Kind == core.Send && e.Msg.Kind == wire.Pull:
			q := &w.shards[e.Msg.Shard]
			if q.pulled = -1; w.rank.Samples(max(0, e.Msg.Iter-1)) {
				q.pulled, q.pull, q.missing, q.replied = e.Msg.Iter, now, len(w.plan.Shards[e.Msg.Shard].Pieces), false
			}
		case e.Kind == core.SendPiece:
			w.shards[e.Shard].left = now
		case e.Kind == core.Read: // all of the version is there, in shared memory
			w.landed(e.Shard, len(w.plan.Shards[e.Shard].Pieces), now)
		}
	}
}

func (w *Worker) begin(m *wire.Header, now time.Duration) {
	q := &w.shards[m.Shard]
	w.endPush(m.Shard, q.left) // a push that its server read in place
	if w.rank.Samples(m.Iter) {
		q.pushed, q.push, q.left, q.unsent = m.Iter, now, now, len(w.plan.Shards[m.Shard].Pieces)
		q.owner, q.arrow = m.Owner, m.Owner == w.me && m.Iter > q.led
		if q.arrow {
			q.led = m.Iter
		}
	}
}

func (w *Worker) sent(s int32, now time.Duration) {
	if q := &w.shards[s]; q.pushed >= 0 {
		if q.unsent--; q.unsent == 0 {
			w.endPush(s, now)
		}
	}
}

func (w *Worker) endPush(s int32, now time.Duration) {
	q := &w.shards[s]
	if q.pushed < 0 {
		return
	}
	till := max(now, q.push+spanMin)
	if lane := w.pushes.take(q.push, till); lane >= 0 {
		w.rank.add(span{kind: Push, stream: streamPush + lane, what: s, worker: q.owner, iter: q.pushed, from: q.push, till: till,
			arrow: q.arrow, push: q.pushed, tip: min(max(q.left, q.push), till-1)})
	}
	q.pushed = -1
}

// landed counts pieces of a reply.
func (w *Worker) landed(s int32, n int, now time.Duration) {
	q := &w.shards[s]
	if q.pulled < 0 {
		return
	}
	if q.missing -= n; q.missing > 0 || !q.replied {
		return
	}
	w.endPush(s, q.left)
	till := now + spanMin // in virtual time a reply may take none, and its arrow ends behind it all the same
	if lane := w.gets.take(q.pull, till); lane >= 0 {
		w.rank.add(span{kind: Pull, stream: streamPull + lane, what: s, worker: w.me, iter: q.pulled, from: q.pull, till: till,
			arrow: q.pulled > 0 && q.led == q.pulled-1, push: q.pulled - 1, tip: till - 1})
	}
	q.pulled = -1
}

// Waited is told of a wait of an iteration for replies: the header of the last one arrived at the second time.
func (w *Worker) Waited(iter int64, from, header, till time.Duration) {
	if w == nil || !w.rank.Samples(max(0, iter)) {
		return
	}
	header = min(max(header, from), till)
	for k, part := range [][2]time.Duration{{from, header}, {header, till}} {
		if part[0] < part[1] {
			w.rank.add(span{kind: Blocked + Kind(k), stream: streamCompute, worker: w.me, iter: iter, from: part[0], till: part[1]})
		}
	}
}

// Summed is told of the sum of a bucket over all ranks, when it is there.
func (w *Worker) Summed(iter int64, bucket int, from time.Duration) {
	if w == nil || !w.rank.Samples(iter) {
		return
	}
	till := w.rank.Now()
	if lane := w.pushes.take(from, till); lane >= 0 {
		w.rank.add(span{kind: Sum, stream: streamPush + lane, what: int32(bucket), worker: w.me, iter: iter, from: from, till: till})
	}
}

// OwnStep is told of an optimizer step of the rank's own.
func (w *Worker) OwnStep(iter int64, from, till time.Duration) {
	if w != nil && w.rank.Samples(iter) {
		w.rank.add(span{kind: Step, stream: streamCompute, worker: w.me, iter: iter, from: from, till: till})
	}
}

// Computing follows the goroutine that computes. Its spans lie in each other: those of layers, and waits for them, in that of a pass.
type Computing struct {
	rank  *Rank
	me    int32
	on    bool // the iteration is recorded
	iter  int64
	begun time.Duration // of the pass
	since time.Duration // of the layer
	layer int32         // of forward; -1: none is open

	turned bool // backward runs; used by Ran
}

// Begin begins forward of an iteration.
func (w *Worker) Begin(iter int64) {
	if w == nil {
		return
	}
	c := &w.Computing
	if c.on = w.rank.Samples(iter); c.on {
		c.iter, c.layer, c.begun = iter, -1, w.rank.Now()
	}
}

// Awaits says that forward needs the parameters of a layer now: the layer before has been computed.
func (w *Worker) Awaits() {
	if w != nil && w.on {
		w.endLayer()
	}
}

func (c *Computing) endLayer() {
	if c.layer >= 0 {
		c.rank.add(span{kind: LayerForward, stream: streamCompute, what: c.layer, worker: c.me, iter: c.iter, from: c.since, till: c.rank.Now()})
		c.layer = -1
	}
}

// Computes says that forward of a layer begins.
func (w *Worker) Computes(layer int) {
	if w != nil && w.on {
		w.layer, w.since = int32(layer), w.rank.Now()
	}
}

// Forwarded ends forward.
func (w *Worker) Forwarded() {
	if w != nil && w.on {
		w.endLayer()
		w.endPass(Forward)
	}
}

func (c *Computing) endPass(k Kind) {
	now := c.rank.Now()
	c.rank.add(span{kind: k, stream: streamCompute, worker: c.me, iter: c.iter, from: c.begun, till: now})
	c.begun, c.since = now, now
}

// Turns begins backward.
func (w *Worker) Turns() {
	if w != nil && w.on {
		w.begun = w.rank.Now()
		w.since = w.begun
	}
}

// LayerDone says that the gradients of a layer are final, and that handing them over begins.
func (w *Worker) LayerDone(layer int) {
	if w != nil && w.on {
		now := w.rank.Now()
		w.rank.add(span{kind: LayerBackward, stream: streamCompute, what: int32(layer), worker: w.Computing.me,
			iter: w.iter, from: w.since, till: now})
		w.since = now
	}
}

// HandedOver ends that.
func (w *Worker) HandedOver(layer int) {
	if w != nil && w.on {
		now := w.rank.Now()
		w.rank.add(span{kind: HandOver, stream: streamCompute, what: int32(layer), worker: w.Computing.me, iter: w.iter,
			from: w.since, till: now})
		w.since = now
	}
}

// Backwarded ends backward.
func (w *Worker) Backwarded() {
	if w != nil && w.on {
		w.endPass(Backward)
	}
}

// The methods below are for a driver that knows the times afterwards, in place of those of Computing.

// Ran is told that forward or backward of a layer ran.
func (w *Worker) Ran(iter int64, layer int, backward bool, from, till time.Duration) {
	if w == nil || !w.rank.Samples(iter) {
		return
	}
	c := &w.Computing
	k := LayerForward
	switch {
	case backward:
		if k = LayerBackward; !c.turned {
			w.rank.add(span{kind: Forward, stream: streamCompute, worker: w.me, iter: iter, from: c.begun, till: c.since})
			c.begun, c.turned = from, true
		}
	case layer == 0:
		c.begun, c.turned = from, false
	}
	c.since = till
	w.rank.add(span{kind: k, stream: streamCompute, what: int32(layer), worker: w.me, iter: iter, from: from, till: till})
}

// RanAll is told that the iteration is over.
func (w *Worker) RanAll(iter int64) {
	if w != nil && w.turned && w.rank.Samples(iter) {
		w.rank.add(span{kind: Backward, stream: streamCompute, worker: w.me, iter: iter, from: w.begun, till: w.since})
		w.turned = false
	}
}

// RanTask is told that something was computed that is not told apart.
func (w *Worker) RanTask(iter int64, from, till time.Duration) {
	if w != nil && w.rank.Samples(max(0, iter)) {
		w.rank.add(span{kind: Task, stream: streamCompute, worker: w.me, iter: iter, from: from, till: till})
	}
}
