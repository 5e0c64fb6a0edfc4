package core

import (
	"fmt"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// State is where a worker stands in its iteration.
type State uint8

const (
	Computing State = iota // forward or backward runs; pieces become ready
	Pushing                // backward is over; the send policy still holds pieces
	Waiting                // every piece was let go; replies or send completions are missing
	Finished               // told to stop, or the servers are told that we left
)

func (s State) String() string {
	return [...]string{"computing", "pushing", "waiting", "finished"}[s]
}

// Worker computes iterations: pushes every shard, then waits for every shard's reply.
type Worker struct {
	me     int32
	plan   *shard.Plan
	policy send.Policy

	state  State
	iter   int64       // the iteration being computed; in Pushing and Waiting, the one pushed; -1 before the first
	first  int64       // the first iteration computed, -1 before: one that came back may have passed over some
	next   int64       // largest Iter of the replies so far: the iteration to compute next
	clock  int64       // largest v of the replies so far
	known  int64       // clock when the exchange of iter began: what its pushes report
	stop   bool        // a reply told us to start no new iteration
	marks  int64       // the pushes of this iteration are marked, -1: of none
	life   int64       // how often it came back: then the servers are told, and say where to go on
	head   wire.Header // Samples, Correct, Loss, Blocked of iter; its Kind is zero until Forwarded
	shards []workerShard
	copies []ownCopy     // per shard; nil if all are pulled before every iteration
	flying int           // pieces given to the transport whose PieceSent is missing
	open   int           // shards whose reply is incomplete
	last   int32         // the shard that was waited for last, of those this iteration waits for; -1: none
	let    []int32       // scratch for the send policy
	now    time.Duration // At of the input being stepped
	done   bool          // Done was given: all is in that was on its way
	stiles []turnstile   // per server; nil if nothing waits for grants
	kept   int           // pieces in them
	early  early
	round  *round   // nil unless it works in rounds
	near   []bool   // per shard: its server shares memory with the worker; nil: none does
	work   *working // nil: the worker computes all of its own iterations, and nothing else
	due    *dues    // nil: every shard is exchanged in every iteration

	LeadMax    int64   // largest lead over a shard at the start of an iteration
	Started    int64   // iterations started
	WaitedLast []int64 // per shard: how often it was the last to be waited for
	Cached     []int64 // per shard: iterations started on a copy of the worker's own, without a pull
}

// workerShard counts the pieces of one shard through one iteration.
type workerShard struct {
	version int64 // of the parameters in the arena; each update of its own that it has added counts as one
	clock   int64 // v of them
	ready   int   // pieces whose gradient is ready, this iteration
	gone    int   // pieces let go by the send policy, this iteration: gone <= ready
	landed  int   // pieces of the reply that are in the arena
	pulled  bool  // the pull is out
	replied bool  // the reply's header came
	let     int64 // the iteration that it lets the worker into

	scheduled bool // its pieces wait for a grant
}

// lead is c - v over the shard at the start of iteration c, v that of its reply or of the worker's copy. Where another shard sends
// the worker on past the iteration that this one has open, c is the one that this one let it into.
func (sh *workerShard) lead(c int64) int64 {
	if sh.replied {
		c = min(c, sh.let)
	}
	return c - sh.clock
}

// NewWorker makes worker me of the plan, with a send policy of its own. It starts at iteration start.
func NewWorker(me int32, plan *shard.Plan, policy send.Policy, start int64) *Worker {
	w := &Worker{
		me: me, plan: plan, policy: policy,
		state: Waiting, iter: start - 1, next: start, first: -1, last: -1, marks: -1, open: len(plan.Shards),
		shards: make([]workerShard, len(plan.Shards)), WaitedLast: make([]int64, len(plan.Shards)), Cached: make([]int64, len(plan.Shards)),
	}
	w.makeLayers()
	return w
}

// Step advances the worker by one input.
func (w *Worker) Step(in Input, out []Effect) []Effect {
	w.now = in.At
	switch in.Kind {
	case Begin:
		return w.begin(out)
	case Forwarded:
		w.must(w.state == Computing && w.head.Kind == 0, in)
		t := w.task()
		w.head = wire.Header{Kind: wire.Push, Worker: w.me, Owner: t.Owner, Part: t.Part, Parts: t.Parts, Iter: t.Iter, Clock: w.known,
			Samples: in.Msg.Samples, Correct: in.Msg.Correct, Loss: in.Msg.Loss, Blocked: in.Msg.Blocked}
		if !w.isHelping() {
			w.mark()
		}
		return out
	case PieceReady:
		return w.pieceReady(in, out)
	case TaskDone:
		w.must(w.state == Computing && w.allReady(), in)
		return w.taskDone(out)
	case PieceSent:
		w.must(w.early.pieces[in.Piece].flying, in)
		w.flown(in.Piece)
		out = w.letGo(pushEvent(send.Sent, &w.plan.Pieces[in.Piece], w.serverOf(in.Piece)), out)
		return w.advance(out)
	case PieceLanded:
		s := w.plan.Pieces[in.Piece].Shard
		if w.landsBeside(s) {
			return w.landedBeside(s, out)
		}
		w.must(w.shards[s].pulled && w.shards[s].landed < len(w.plan.Shards[s].Pieces), in)
		w.shards[s].landed++
		w.landedIn(in.Piece)
		return w.closeShard(s, out)
	case Arrived:
		return w.arrived(in, out)
	default:
		panic(fmt.Sprintf("core: worker %d: no such input: %v", w.me, in))
	}
}

func (w *Worker) pieceReady(in Input, out []Effect) []Effect {
	s := w.plan.Pieces[in.Piece].Shard
	sh := &w.shards[s]
	w.must(w.state == Computing && w.head.Kind != 0 && sh.ready < len(w.plan.Shards[s].Pieces) && !w.early.pieces[in.Piece].flying, in)
	if w.rests(s) {
		sh.ready, sh.gone = sh.ready+1, sh.gone+1
		return out
	}
	if sh.ready == 0 {
		m := w.head
		m.Shard, m.Version = s, sh.version
		if w.isHelping() {
			m.Version = w.work.read[s]
		}
		if w.due != nil {
			m.Iter, m.Clock = w.turn(s), w.knownOf(s)
		}
		out = append(out, Effect{Kind: Send, To: w.plan.Shards[s].Server, Msg: m})
		w.owe(s)
	}
	sh.ready++
	if sh.scheduled {
		return w.keep(in.Piece, w.plan.Shards[s].Server, out)
	}
	if w.lends(s) {
		return w.goes(in.Piece, out)
	}
	return w.letGo(pushEvent(send.Handed, &w.plan.Pieces[in.Piece], w.serverOf(in.Piece)), out)
}

// letGo asks the send policy, and sends what it lets go. The pull of a shard follows its last piece, so that
// no shard's pull waits for another shard's push, nor any push for a reply.
func (w *Worker) letGo(ev send.Event, out []Effect) []Effect {
	w.let = w.policy.Step(ev, w.let[:0])
	for _, p := range w.let {
		out = w.goes(p, out)
	}
	return out
}

func (w *Worker) goes(p int32, out []Effect) []Effect {
	s := w.plan.Pieces[p].Shard
	sh := &w.shards[s]
	sh.gone++
	w.fly(p)
	iter := w.turn(s)
	if w.isHelping() {
		iter = w.work.helps.Iter
	}
	out = append(out, Effect{Kind: SendPiece, To: w.plan.Shards[s].Server, Piece: p, Shard: s, Iter: iter})
	if sh.gone == len(w.plan.Shards[s].Pieces) && !w.isHelping() {
		out = w.renew(s, out)
	}
	return out
}

func (w *Worker) pull(s int32, out []Effect) []Effect {
	w.shards[s].pulled = true
	m := wire.Header{Kind: wire.Pull, Worker: w.me, Shard: s, Iter: w.turn(s) + 1}
	return append(out, Effect{Kind: Expect, Shard: s, To: w.plan.Shards[s].Server},
		Effect{Kind: Send, To: w.plan.Shards[s].Server, Msg: m})
}

func (w *Worker) arrived(in Input, out []Effect) []Effect {
	m := in.Msg
	if m.Kind == wire.Peer {
		w.must(w.work != nil, in)
		return w.advance(w.tellWork(WorkEvent{Kind: Came, Msg: m}, out))
	}
	if m.Kind == wire.Ack || m.Kind == wire.Release {
		return w.inRound(in, out)
	}
	if m.Kind == wire.Grant || m.Kind == wire.Revoke {
		return w.grantOrRevoke(in, out)
	}
	if m.Kind == wire.Publish || m.Kind == wire.Ended {
		return w.published(in, out)
	}
	w.must(m.Kind == wire.Reply && m.Worker == w.me, in)
	sh := &w.shards[m.Shard]
	w.must(sh.pulled && !sh.replied && m.Iter > w.turn(m.Shard), in)
	if w.isNear(m.Shard) {
		out = w.readReply(m, out)
	}
	sh.replied, sh.let = true, m.Iter
	w.answered(m.Shard)
	sh.version, sh.clock = m.Version, m.Clock
	w.answeredAt(&m)
	w.clock = max(w.clock, m.Clock)
	w.stop = w.stop || m.Flags&wire.Stop != 0
	if m.Flags&wire.Save != 0 {
		w.marks = m.Iter
	}
	if m.Flags&wire.Ask != 0 {
		w.copies[m.Shard].asks = true
	}
	return w.closeShard(m.Shard, out)
}

// closeShard is called when something of a reply came.
func (w *Worker) closeShard(s int32, out []Effect) []Effect {
	if w.isWhole(s) {
		w.open--
		w.last = s
		if w.copies != nil && w.copies[s].beside {
			out = w.takeBeside(s, out)
		}
	}
	return w.advance(out)
}

// advance starts the next iteration when that may be, and its exchange when nothing of this one's is missing any more.
func (w *Worker) advance(out []Effect) []Effect {
	if w.state == Pushing && w.policy.Held() == 0 && w.kept == 0 {
		w.state = Waiting
		if w.work != nil {
			w.work.helping = false
		}
	}
	if w.mayHelp() {
		return w.help(out)
	}
	if w.mayStart() {
		w.early.begun, w.early.started = true, max(w.next, w.iter+1)
		w.Started++
		w.let = w.policy.Step(send.Event{Kind: send.Started, At: w.now}, w.let[:0])
		out = w.startOwn(w.early.started, out)
	}
	if w.state != Waiting || w.open > 0 || !w.early.begun && (w.flying > 0 || w.owes()) {
		return out
	}
	if w.last >= 0 {
		w.WaitedLast[w.last]++
	}
	if !w.early.begun { // there is no next one
		w.state = Finished
		if w.work != nil {
			out = w.tellWork(WorkEvent{Kind: Leaves}, out)
		}
		for m := range w.plan.Servers {
			out = append(out, Effect{Kind: Send, To: int32(m), Msg: wire.Header{Kind: wire.Left, Worker: w.me, Iter: w.pushedAt(int32(m)), Clock: w.life}})
		}
		return w.drained(out)
	}
	w.exchange()
	return out
}

// exchange begins the exchange of the iteration that was started.
func (w *Worker) exchange() {
	if next := max(w.next, w.iter+1); next != w.early.started {
		panic(fmt.Sprintf("core: worker %d started iteration %d before a shard sent it on to %d: its scheme does not say that it may: %v", w.me, w.early.started, next, w))
	}
	w.state, w.early.begun = Computing, false
	w.iter, w.known = w.early.started, w.clock
	if w.first < 0 {
		w.first = w.iter
	}
	w.head = wire.Header{}
	if w.work != nil {
		for s := range w.shards {
			w.work.read[s] = w.shards[s].version
		}
	}
	w.open, w.last = len(w.shards), -1
	if w.due != nil {
		w.due.open(w)
	}
	for s := range w.shards {
		w.LeadMax = max(w.LeadMax, w.shards[s].lead(w.turn(int32(s))))
	}
	for s := range w.shards {
		w.shards[s] = workerShard{version: w.shards[s].version, clock: w.shards[s].clock, scheduled: w.shards[s].scheduled}
	}
	for s := range w.copies {
		w.copies[s].settled = false
	}
	w.awaitLayers()
	w.closeStiles()
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

// Iter is the iteration being computed, or the one just pushed; -1 before the first of a new run.
func (w *Worker) Iter() int64 { return w.iter }

// State is where the worker stands.
func (w *Worker) State() State { return w.state }

// Sending describes the send policy: what it holds, and what it has tuned itself to.
func (w *Worker) Sending() string { return w.policy.String() }

// Missing lists the shards whose replies are incomplete, for the stall report.
func (w *Worker) Missing() []int32 {
	var ids []int32
	for s := range w.shards {
		if w.tooOld(int32(s)) || w.shards[s].pulled && (!w.shards[s].replied || w.shards[s].landed < len(w.plan.Shards[s].Pieces)) {
			ids = append(ids, int32(s))
		}
	}
	return ids
}

// Check holds the worker to its invariants; the first is the law "push all, then wait".
func (w *Worker) Check() error {
	first := w.head.Kind == 0 && w.state == Waiting // before the first iteration there is nothing to push
	for s := range w.shards {
		sh := &w.shards[s]
		n := len(w.plan.Shards[s].Pieces)
		switch {
		case w.state == Waiting && !first && sh.gone < n:
			return fmt.Errorf("core: worker %d waits while shard %d has %d of %d pieces to push", w.me, s, n-sh.gone, n)
		case sh.gone > sh.ready:
			return fmt.Errorf("core: worker %d shard %d: %d pieces let go, only %d ready", w.me, s, sh.gone, sh.ready)
		case w.state == Computing && sh.pulled && sh.gone < n && !w.isHelping():
			return fmt.Errorf("core: worker %d pulled shard %d before its push was let go", w.me, s)
		}
	}
	if err := w.checkStiles(); err != nil {
		return err
	}
	for _, check := range []func() error{w.checkCopies, w.checkWork, w.checkDue} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := w.checkLayers(); err != nil {
		return err
	}
	if w.state == Finished && (w.flying > 0 || w.open > 0) {
		return fmt.Errorf("core: worker %d finished with %d sends and %d replies open", w.me, w.flying, w.open)
	}
	return nil
}

func (w *Worker) String() string {
	return fmt.Sprintf("w%d %v iter=%d next=%d v=%d open=%d flying=%d %v", w.me, w.state, w.iter, w.next, w.clock, w.open, w.flying, w.policy)
}

// must panics on an input that no driver may send in this state: it is a bug of ours.
func (w *Worker) must(ok bool, in Input) {
	if !ok {
		panic(fmt.Sprintf("core: worker %d: %v must not come in state %v", w.me, in, w))
	}
}
