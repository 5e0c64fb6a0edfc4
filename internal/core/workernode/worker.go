// Package workernode holds the node of a worker rank: what it computes, pushes, pulls and waits for, as a pure state machine.
//
// A worker is Computing until backward is over. It is Pushing until the send policy has released every piece, and
// Waiting until every shard has replied and every send is complete. Then it is Computing again, or Finished. It pushes
// all shards before it waits for any (the law "push all, then wait"): the pull of a shard never holds back a push.
// Forward of the next iteration may start layer by layer before all shards have replied (early.go).
//
// Beside that, a worker may keep its copy of a shard for several iterations, or subscribe to new versions (copies.go), hold pieces back
// until a server grants them (grants.go), exchange a shard in some iterations only (due.go), compute what a policy says of its own
// iterations and of others' (work.go), pull before it has pushed (ahead.go), wait for its batch (dealt.go), vote on an
// exchange (vote.go), and come back after it was lost (join.go).
package workernode

import (
	"fmt"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// Worker computes iterations. In each it pushes every shard, then waits for every shard's reply.
type Worker struct {
	me   int32
	plan *shard.Plan

	state core.State
	iter  int64         // the iteration being computed; in Pushing and Waiting, the one pushed; -1 before the first
	first int64         // the first iteration computed, -1 before it; above the start where a worker that came back skips some
	life  int64         // how often the worker has come back. Above 0 it tells the servers, and they say where it continues
	done  bool          // Done was given: nothing is in flight to the worker
	now   time.Duration // At of the input being stepped

	head          wire.Header // Samples, Correct, Loss, Blocked of iter; its Kind is zero until Forwarded
	reportedClock int64       // replies.clock when the exchange of iter began; its pushes report it
	marks         marks
	sending       sending
	grants        granting
	replies       replies
	shards        []workerShard
	copies        []ownCopy // per shard; nil if all are pulled before every iteration
	early         early
	round         *round          // nil unless the worker works in rounds
	work          *workState      // nil: the worker computes all of its own iterations, and nothing else
	exchanges     *exchangeClocks // nil: every shard is exchanged in every iteration
	batches       batches
	verdict       wire.Header // on the worker's last vote; its Kind is zero until then
	questions     questions
	progress      *wire.Progress // what the lead shard's server told last; nil: every step is an exchange

	Counts WorkerCounts
}

// New makes worker me of the plan, with its own send policy. It starts at iteration start.
func New(me int32, plan *shard.Plan, policy send.Policy, start int64) *Worker {
	shards := len(plan.Shards)
	w := &Worker{
		me: me, plan: plan, state: core.Waiting, iter: start - 1, first: -1,
		marks: marks{save: -1, change: -1}, sending: sending{policy: policy},
		replies: replies{next: start, last: -1, open: shards},
		shards:  make([]workerShard, shards),
		Counts:  WorkerCounts{WaitedLast: make([]int64, shards), Cached: make([]int64, shards)},
	}
	w.makeLayers()
	return w
}

// Step advances the worker by one input.
func (w *Worker) Step(in core.Input, out []core.Effect) []core.Effect {
	w.now = in.At
	return w.answerQuestions(w.step(in, out))
}

func (w *Worker) step(in core.Input, out []core.Effect) []core.Effect {
	switch in.Kind {
	case core.Begin:
		return w.begin(out)
	case core.Forwarded:
		return w.forwarded(in, out)
	case core.StepBegun:
		return w.stepsOn(in, out)
	case core.PieceReady:
		return w.pieceReady(in, out)
	case core.TaskDone:
		w.must(w.state == core.Computing && w.allReady(), in)
		return w.taskDone(out)
	case core.PieceSent:
		w.must(w.early.pieces[in.Piece].inFlight, in)
		w.noteSent(in.Piece)
		out = w.tellPolicy(pushEvent(send.Sent, &w.plan.Pieces[in.Piece], w.serverOf(in.Piece)), out)
		return w.advance(w.grantedSent(in.Piece, out))
	case core.PieceLanded:
		s := w.plan.Pieces[in.Piece].Shard
		if w.landsBeside(s) {
			return w.landedBeside(s, out)
		}
		w.must(w.shards[s].pulled && w.shards[s].landed < len(w.plan.Shards[s].Pieces), in)
		w.shards[s].landed++
		w.noteLanded(in.Piece)
		return w.replyProgressed(s, out)
	case core.Voted:
		return w.vote(in, out)
	case core.Arrived:
		return w.arrived(in, out)
	default:
		panic(fmt.Sprintf("core: worker %d: unknown input: %v", w.me, in))
	}
}

// forwarded makes the header of the pushes of the task that was computed.
func (w *Worker) forwarded(in core.Input, out []core.Effect) []core.Effect {
	w.must(w.state == core.Computing && w.head.Kind == 0, in)
	out = w.fixed(in, out)
	t := w.task()
	w.head = wire.Header{Kind: wire.Push, Worker: w.me, Owner: t.Owner, Part: t.Part, Parts: t.Parts, Iter: t.Iter, Clock: w.reportedClock,
		Samples: in.Msg.Samples, Correct: in.Msg.Correct, Loss: in.Msg.Loss, Blocked: in.Msg.Blocked}
	if !w.isInExtra() || w.pullsAhead() {
		w.markPushes()
	}
	w.keepsGradients(t)
	return out
}

func (w *Worker) pieceReady(in core.Input, out []core.Effect) []core.Effect {
	s := w.plan.Pieces[in.Piece].Shard
	sh := &w.shards[s]
	w.must(w.state == core.Computing && w.head.Kind != 0 && sh.ready < len(w.plan.Shards[s].Pieces) && !w.early.pieces[in.Piece].inFlight, in)
	if w.isResting(s) || w.isTooLate(s) {
		sh.ready, sh.released = sh.ready+1, sh.released+1
		return out
	}
	if sh.ready == 0 {
		w.questions.forget(s)
		m := w.head
		m.Shard, m.Version = s, sh.version
		if w.isInExtra() {
			m.Version = w.work.readVersion[s]
		}
		if w.exchanges != nil {
			m.Iter, m.Clock = w.exchangeIter(s), w.reportedClockOf(s)
		}
		out = append(out, core.Effect{Kind: core.Send, To: w.plan.Shards[s].Server, Msg: m})
		w.noteOwedPart(s)
	}
	sh.ready++
	if sh.scheduled {
		return w.holdForGrant(in.Piece, w.plan.Shards[s].Server, out)
	}
	if w.pushIsReadInPlace(s) {
		return w.sendPiece(in.Piece, out)
	}
	return w.tellPolicy(pushEvent(send.Handed, &w.plan.Pieces[in.Piece], w.serverOf(in.Piece)), out)
}

// tellPolicy tells the send policy of an event and sends the pieces that it releases. The pull of a shard follows the
// shard's last piece. So no shard's pull waits for another shard's push, and no push waits for a reply.
func (w *Worker) tellPolicy(ev send.Event, out []core.Effect) []core.Effect {
	w.sending.released = w.sending.policy.Step(ev, w.sending.released[:0])
	for _, p := range w.sending.released {
		out = w.sendPiece(p, out)
	}
	return out
}

func (w *Worker) sendPiece(p int32, out []core.Effect) []core.Effect {
	s := w.plan.Pieces[p].Shard
	sh := &w.shards[s]
	sh.released++
	w.noteSending(p)
	iter := w.exchangeIter(s)
	if w.isInExtra() {
		iter = w.work.extra.Iter
	}
	out = append(out, core.Effect{Kind: core.SendPiece, To: w.plan.Shards[s].Server, Piece: p, Shard: s, Iter: iter})
	if sh.released == len(w.plan.Shards[s].Pieces) && !w.isInExtra() {
		out = w.refreshShard(s, out)
	}
	return out
}

func (w *Worker) pull(s int32, out []core.Effect) []core.Effect {
	w.shards[s].pulled = true
	m := wire.Header{Kind: wire.Pull, Worker: w.me, Shard: s, Iter: w.exchangeIter(s) + 1}
	return append(out, core.Effect{Kind: core.Expect, Shard: s, To: w.plan.Shards[s].Server},
		core.Effect{Kind: core.Send, To: w.plan.Shards[s].Server, Msg: m})
}

func (w *Worker) arrived(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	switch m.Kind {
	case wire.Peer:
		return w.peer(in, out)
	case wire.Dealt:
		return w.dealt(m, out)
	case wire.Verdict:
		w.verdict = m
		return out
	case wire.Ack, wire.Release:
		return w.inRound(in, out)
	case wire.Grant, wire.Revoke:
		return w.grantOrRevoke(in, out)
	case wire.AskWaits:
		w.questions.ask(len(w.shards), &m)
		return out
	case wire.Publish, wire.Ended:
		return w.published(in, out)
	}
	w.must(m.Kind == wire.Reply && m.Worker == w.me, in)
	sh := &w.shards[m.Shard]
	w.must(sh.pulled && !sh.replied && m.Iter > w.exchangeIter(m.Shard), in)
	if w.isNear(m.Shard) {
		out = w.readReply(m, out)
	}
	sh.replied, sh.letInto = true, m.Iter
	w.noteReply(m.Shard)
	sh.version, sh.clock = m.Version, m.Clock
	w.noteNextIter(&m)
	w.noteProgress(&m)
	w.replies.clock = max(w.replies.clock, m.Clock)
	w.replies.stop = w.replies.stop || m.Flags&wire.Stop != 0
	w.noteMarks(&m)
	if m.Flags&wire.Ask != 0 {
		w.copies[m.Shard].mustPull = true
	}
	return w.replyProgressed(m.Shard, w.answered(out))
}

// replyProgressed is called when a part of a reply has arrived.
func (w *Worker) replyProgressed(s int32, out []core.Effect) []core.Effect {
	if w.replyIsComplete(s) {
		w.replies.open--
		w.replies.last = s
		out = w.align(out)
		if w.copies != nil && w.copies[s].beside {
			out = w.receiveBeside(s, out)
		}
	}
	return w.advance(out)
}

// advance starts the next iteration when it may start, and that iteration's exchange when nothing of the current
// exchange is missing.
func (w *Worker) advance(out []core.Effect) []core.Effect {
	if w.state == core.Pushing && w.sending.policy.Held() == 0 && w.grants.ungranted == 0 {
		w.state = core.Waiting
		if w.work != nil {
			w.work.inExtra = false
		}
	}
	if w.mayStartExtra() {
		return w.startExtra(out)
	}
	if w.mayStart() {
		w.early.nextStarted, w.early.nextIter = true, max(w.replies.next, w.iter+1)
		w.Counts.Started++
		w.sending.released = w.sending.policy.Step(send.Event{Kind: send.Started, At: w.now}, w.sending.released[:0])
		out = w.startOwn(w.early.nextIter, out)
	}
	if w.state != core.Waiting || w.replies.open > 0 || !w.early.nextStarted && (w.sending.inFlight > 0 || w.owesParts() || w.AwaitsBatch()) {
		return out
	}
	if w.replies.last >= 0 {
		w.Counts.WaitedLast[w.replies.last]++
	}
	if !w.early.nextStarted { // there is no next iteration
		w.state = core.Finished
		out = w.leaveWork(out)
		for m := range w.plan.Servers {
			out = append(out, core.Effect{Kind: core.Send, To: int32(m),
				Msg: wire.Header{Kind: wire.Left, Worker: w.me, Iter: w.pushedUpTo(int32(m)), Clock: w.life}})
		}
		return w.finishIfDrained(out)
	}
	w.beginExchange()
	return w.pullAhead(out)
}

// beginExchange begins the exchange of the iteration that was started.
func (w *Worker) beginExchange() {
	if next := max(w.replies.next, w.iter+1); next != w.early.nextIter {
		panic(fmt.Sprintf("core: worker %d started iteration %d before a shard let it into %d, and that shard's scheme "+
			"does not declare that it may skip iterations: %v", w.me, w.early.nextIter, next, w))
	}
	w.state, w.early.nextStarted, w.iter, w.reportedClock = core.Computing, false, w.early.nextIter, w.replies.clock
	if w.first < 0 {
		w.first = w.iter
	}
	w.head = wire.Header{}
	if w.work != nil {
		for s := range w.shards {
			w.work.readVersion[s] = w.shards[s].version
		}
	}
	w.replies.open, w.replies.last = len(w.shards), -1
	if w.exchanges != nil {
		w.exchanges.open(w)
	}
	for s := range w.shards {
		w.Counts.LeadMax = max(w.Counts.LeadMax, w.shards[s].lead(w.exchangeIter(int32(s))))
	}
	for s := range w.shards {
		sh := &w.shards[s]
		*sh = workerShard{version: sh.version, clock: sh.clock, near: sh.near, scheduled: sh.scheduled}
	}
	for s := range w.copies {
		w.copies[s].settled = false
	}
	w.awaitLayers()
	w.closeGates()
}

func (w *Worker) allReady() bool {
	for s := range w.shards {
		if w.shards[s].ready < len(w.plan.Shards[s].Pieces) {
			return false
		}
	}
	return true
}

func (w *Worker) serverOf(piece int32) int32 { return w.plan.Shards[w.plan.Pieces[piece].Shard].Server }

// Check verifies the worker's invariants; the first is the law "push all, then wait".
func (w *Worker) Check() error {
	first := w.head.Kind == 0 && w.state == core.Waiting // there is nothing to push before the first iteration
	for s := range w.shards {
		sh := &w.shards[s]
		n := len(w.plan.Shards[s].Pieces)
		switch {
		case w.state == core.Waiting && !first && sh.released < n:
			return fmt.Errorf("core: worker %d waits, and shard %d still has %d of %d pieces to push", w.me, s, n-sh.released, n)
		case sh.released > sh.ready:
			return fmt.Errorf("core: worker %d shard %d: %d pieces released, only %d ready", w.me, s, sh.released, sh.ready)
		case w.state == core.Computing && sh.pulled && sh.released < n && !w.isInExtra() && !w.pullsAhead():
			return fmt.Errorf("core: worker %d pulled shard %d before its push was released", w.me, s)
		}
	}
	if err := w.checkGates(); err != nil {
		return err
	}
	for _, check := range []func() error{w.checkCopies, w.checkWork, w.checkExchanges} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := w.checkLayers(); err != nil {
		return err
	}
	if w.state == core.Finished && (w.sending.inFlight > 0 || w.replies.open > 0) {
		return fmt.Errorf("core: worker %d finished with %d sends and %d replies open", w.me, w.sending.inFlight, w.replies.open)
	}
	return nil
}

// must panics on an input that no driver may give in this state. Such an input is our own bug.
func (w *Worker) must(ok bool, in core.Input) {
	if !ok {
		panic(fmt.Sprintf("core: worker %d: input %v is not allowed in state %v", w.me, in, w))
	}
}

// pushEvent is the event that a worker's send policy is told of a piece and its server; replyEvent is the event that a
// server's policy is told of a piece and its worker.
func pushEvent(kind send.EventKind, p *shard.Piece, to int32) send.Event {
	return send.Event{Kind: kind, Piece: p.ID, Layer: p.Layer, Shard: p.Shard, To: to, Bytes: p.PushBytes}
}
