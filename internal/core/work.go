package core

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

// Who computes which samples (the work axis). A worker computes all of its own batch in every iteration, unless a Work
// says otherwise: that it computes a range of its batch, and ranges that other workers have given it. The gradients of
// a range are pushed as one of the parts of its iteration (parts.go).
//
//	Work                          Worker                              driver
//	Starting ─► Assign ─────────► Compute of a range ───────────────► computes it, Grain samples at a time
//	Stepped ◄──────────────────── StepBegun ◄──────────────────────── before each step
//	  Divide, Cancel ───────────► Cancel ───────────────────────────► begins no sample from there on
//	Fixed ◄────────────────────── Forwarded, PieceReady, TaskDone ◄── with what was computed
//	Computed ─► Tell ───────────► SendWorker ───────────────────────► Peer of the other worker: Came
//
// A task besides the worker's own iteration is an extra task: one that it computes for another worker, or a range of
// its own iteration that it takes back. It computes an extra task when the pushes of its current iteration have left.
// The gradients go into the memory of its next gradients. The parameters are those that the iteration has read; the
// driver keeps them, since replies may land meanwhile. The worker must not wait for its own replies first: they may
// wait for another worker's task, and that worker would wait likewise. So no iteration starts early. A worker that is
// told to stop computes its extra tasks first. It pulls nothing for them.

// Task is a range of the samples of one iteration.
type Task struct {
	Owner       int32 // the worker whose iteration it is
	Part, Parts int32 // index and number of the iteration's pushes; 0 of 1: all of it. Parts 0, of an extra task: the owner's own part says
	Iter        int64
	From, To    int32 // samples of the owner's batch, [From, To); To 0: up to the batch's end
	Grain       int32 // samples per step of the computation: a Cancel takes effect between two steps; 0: all in one step
	// Until is how long the computation may take: beside the first, no step begins later. 0: it has no limit. The time of
	// a worker's own iteration counts from the first step, and so does that of an extra task.
	Until time.Duration
	Keep  Keeping
	// Threads is how many threads the worker's kernels use from this iteration on; 0: as many as before. Of a worker's own iteration only.
	Threads int32
}

// Keeping says what is done with the gradients of a task.
type Keeping uint8

const (
	NotKept Keeping = iota // they are pushed when they are computed
	Kept                   // the driver keeps them, and nothing is pushed
	Again                  // nothing is computed: what the driver has kept of this task is pushed
)

// same says whether two tasks are the same push of the same iteration.
func (t *Task) same(u *Task) bool { return t.Owner == u.Owner && t.Iter == u.Iter && t.Part == u.Part }

// WorkEventKind says what a Work is told.
type WorkEventKind uint8

const (
	Starting WorkEventKind = iota // the worker's next iteration starts: Task is all of it, until an Assign says otherwise
	Begun                         // the computation of Task begins; Task was assigned after Starting
	Stepped                       // a step of Task begins; Samples is the first sample behind it: those before it can no longer be cancelled
	// Samples samples of Task were computed. Nothing of it can be cancelled any more, and of an own iteration the parts are fixed
	Fixed
	Computed // Samples samples of Task were computed and are being pushed; if Kept, they are kept
	Came     // Msg has arrived from another worker
	Gone     // the worker Task.Owner has left the run, or was lost: it begins nothing any more
	Leaves   // the worker leaves the run and computes nothing any more
	Answered // every shard is past the worker's iteration: nothing of it counts any more. Only where workers pull ahead (ahead.go)
)

// WorkEvent is one thing that happened.
type WorkEvent struct {
	Kind    WorkEventKind
	Task    Task
	Samples int64
	Msg     wire.Header
	At      time.Duration // as in Input
}

// OrderKind says what a Work wants.
type OrderKind uint8

const (
	// Compute Task; no part a second time. During Starting it may be a range of the worker's own starting iteration. Otherwise it is an extra
	// task: of the worker's current iteration, or of another worker's.
	Assign OrderKind = iota
	// Start no sample of Task from To on. If no sample is left of a task that has not begun, the worker forgets the
	// task, and another worker must compute its part.
	CancelWork
	Divide // the worker's own iteration, which is not Fixed yet, has Task.Parts parts; more than before
	Tell   // send Msg to another worker, To
)

// Order is one order of a Work.
type Order struct {
	Kind OrderKind
	Task Task
	To   int32
	Msg  wire.Header // of Kind Peer
}

// Work decides what its worker computes. It is a pure machine, like a scheme or a send policy.
type Work interface {
	Step(ev WorkEvent, out []Order) []Order // appends to out; panics on an event that cannot happen
}

// workState is a worker's state on the work axis.
type workState struct {
	policy  Work
	workers int32
	gone    []bool  // per worker: it has left or was lost
	orders  []Order // scratch
	own     Task    // the task of the iteration that was started last
	queue   []Task  // extra tasks that have not begun
	inExtra bool    // the task that is computed or pushed is extra, not own
	// the extra task that began last
	extra       Task
	owed        []owedPart // parts of others' iterations that were pushed and are not acknowledged
	readVersion []int64    // per shard: the version that the iteration has read; extra tasks are computed on it
	starting    bool       // the policy is being told of Starting
	ahead       bool       // the worker pulls when an iteration starts (ahead.go)
	silent      int        // then: shards that have not replied
}

// owedPart is a part of another worker's iteration, at one shard.
type owedPart struct {
	task  Task
	shard int32
}

// SetWork gives the worker a work policy. It must be called before the first input, and without StartEarly. All shards
// of the worker must be pulled before every iteration, without rounds, grants and shared memory.
func (w *Worker) SetWork(p Work, workers int) {
	if w.early.on || w.round != nil || w.copies != nil || w.grants.gates != nil ||
		slices.ContainsFunc(w.shards, func(sh workerShard) bool { return sh.near }) {
		panic(fmt.Sprintf("core: worker %d: a work policy does not go with early starts, copies, grants, rounds or shared memory", w.me))
	}
	w.work = &workState{policy: p, workers: int32(workers), gone: make([]bool, workers), readVersion: make([]int64, len(w.shards))}
}

// task is the task that is computed or pushed.
func (w *Worker) task() Task {
	switch {
	case w.work == nil:
		return Task{Owner: w.me, Parts: 1, Iter: w.iter}
	case w.work.inExtra:
		return w.work.extra
	}
	return w.work.own
}

func (w *Worker) isInExtra() bool { return w.work != nil && w.work.inExtra }

// hasExtra says whether an extra task must be computed before the next iteration starts.
func (w *Worker) hasExtra() bool { return w.work != nil && len(w.work.queue) > 0 }

// mayStartExtra says whether an extra task may begin. Before its first iteration a worker has no parameters for it.
func (w *Worker) mayStartExtra() bool {
	return w.hasExtra() && w.state == Waiting && !w.early.nextStarted && w.sending.inFlight == 0 && w.first >= 0
}

// computeEffect tells the driver to compute a task.
func computeEffect(t Task) Effect {
	return Effect{Kind: Compute, Iter: t.Iter, Src: t.From, Dst: t.To, Slot: t.Grain, At: t.Until,
		Msg: wire.Header{Owner: t.Owner, Part: t.Part, Parts: t.Parts, Iter: t.Iter, Flags: uint8(t.Keep), Samples: int64(t.Threads)}}
}

// Task is the task of a Compute or a Cancel.
func (e *Effect) Task() Task {
	return Task{Owner: e.Msg.Owner, Part: e.Msg.Part, Parts: e.Msg.Parts, Iter: e.Iter, From: e.Src, To: e.Dst,
		Grain: e.Slot, Until: e.At, Keep: Keeping(e.Msg.Flags), Threads: int32(e.Msg.Samples)}
}

// startOwn starts the worker's next iteration, or the range of it that the policy leaves to the worker.
func (w *Worker) startOwn(iter int64, out []Effect) []Effect {
	own := Task{Owner: w.me, Parts: 1, Iter: iter}
	if w.work == nil {
		return append(out, computeEffect(own))
	}
	w.work.own, w.work.starting = own, true
	out = w.tellWork(WorkEvent{Kind: Starting, Task: own}, out)
	w.work.starting = false
	return append(out, computeEffect(w.work.own))
}

// startExtra starts the first extra task of the queue.
func (w *Worker) startExtra(out []Effect) []Effect {
	k := w.work
	k.inExtra, k.extra = true, k.queue[0]
	k.queue = slices.Delete(k.queue, 0, 1)
	w.state, w.head = Computing, wire.Header{}
	for s := range w.shards {
		w.shards[s].ready, w.shards[s].released = 0, 0
	}
	out = append(out, computeEffect(k.extra))
	return w.tellWork(WorkEvent{Kind: Begun, Task: k.extra}, out)
}

// tellWork tells the policy of an event and obeys its orders.
func (w *Worker) tellWork(ev WorkEvent, out []Effect) []Effect {
	k := w.work
	ev.At = w.now
	k.orders = k.policy.Step(ev, k.orders[:0])
	for i := range k.orders {
		o := &k.orders[i]
		switch o.Kind {
		case Assign:
			w.assign(ev.Kind, o.Task)
		case CancelWork:
			out = w.cancel(o.Task, out)
		case Divide:
			w.divide(o.Task)
		case Tell:
			o.Msg.Kind, o.Msg.Worker = wire.Peer, w.me
			out = append(out, Effect{Kind: SendWorker, To: o.To, Msg: o.Msg})
		}
	}
	return out
}

func (w *Worker) assign(during WorkEventKind, t Task) {
	k := w.work
	bad := t.Part < 0 || t.Parts > 0 && t.Part >= t.Parts || during == Starting && t.Owner == w.me && t.Parts < 1 ||
		t.From < 0 || t.Grain < 0 || t.To > 0 && t.From >= t.To
	switch {
	case bad || w.state == Finished:
	case t.Owner != w.me, during != Starting && t.Iter == w.iter && !w.early.nextStarted:
		k.queue = append(k.queue, t)
		return
	case during == Starting && t.Iter == k.own.Iter:
		k.own = t
		return
	}
	panic(fmt.Sprintf("core: worker %d: its work policy assigns %+v in iteration %d, which is not allowed", w.me, t, k.own.Iter))
}

// divide gives parts of the worker's own iteration to others. Its own part, which is pushed last at the earliest, tells
// the servers how many parts there are.
func (w *Worker) divide(t Task) {
	k := w.work
	if now := w.taskBeingComputed(); t.Owner != w.me || t.Iter != k.own.Iter || t.Parts <= k.own.Parts || !k.starting &&
		(now == nil || now != &k.own) {
		panic(fmt.Sprintf("core: worker %d: its work policy divides %+v, which is not allowed while %+v is computed", w.me, t, k.own))
	}
	k.own.Parts = t.Parts
}

// stepsOn notes that the driver begins a step of the task that is computed.
func (w *Worker) stepsOn(in Input, out []Effect) []Effect {
	t := w.taskBeingComputed()
	w.must(t != nil, in)
	return w.tellWork(WorkEvent{Kind: Stepped, Task: *t, Samples: in.Msg.Samples}, out)
}

// fixed tells the policy that a task can no longer be changed, before the header of its push is made.
func (w *Worker) fixed(in Input, out []Effect) []Effect {
	if w.work == nil {
		return out
	}
	return w.tellWork(WorkEvent{Kind: Fixed, Task: w.task(), Samples: in.Msg.Samples}, out)
}

// peer tells the policy of a message from another worker's, or that the other worker has left or was lost.
func (w *Worker) peer(in Input, out []Effect) []Effect {
	w.must(w.work != nil && in.Msg.Worker != w.me, in)
	ev := WorkEvent{Kind: Came, Msg: in.Msg}
	if in.Msg.Flags == wire.Gone {
		ev = WorkEvent{Kind: Gone, Task: Task{Owner: in.Msg.Worker}}
		w.work.gone[in.Msg.Worker] = true
	}
	out = w.tellWork(ev, out)
	if w.state == Finished && !w.done {
		return w.finishIfDrained(out)
	}
	return w.advance(out)
}

// hearsOfOthers says whether another worker may still send a message: it has not said that it leaves. A worker that has left
// receives all of them before it is done, so none is in flight to it when the run ends or a new node takes its place.
func (w *Worker) hearsOfOthers() bool {
	if w.work == nil || w.life > 0 { // one that came back does not know who had left before
		return false
	}
	for other, isGone := range w.work.gone {
		if !isGone && int32(other) != w.me {
			return true
		}
	}
	return false
}

// leaveWork tells the policy and the other workers that this one leaves.
func (w *Worker) leaveWork(out []Effect) []Effect {
	if w.work == nil {
		return out
	}
	out = w.tellWork(WorkEvent{Kind: Leaves}, out)
	for to := range w.work.workers {
		if to != w.me {
			out = append(out, Effect{Kind: SendWorker, To: to, Msg: wire.Header{Kind: wire.Peer, Worker: w.me, Flags: wire.Gone}})
		}
	}
	return out
}

// cancel removes the samples from t.To on from a task. It does nothing for samples that were computed already.
func (w *Worker) cancel(t Task, out []Effect) []Effect {
	k := w.work
	if i := slices.IndexFunc(k.queue, func(q Task) bool { return q.same(&t) }); i >= 0 {
		q := &k.queue[i]
		if q.To == 0 || t.To < q.To {
			q.To = t.To
		}
		if q.To <= q.From {
			k.queue = slices.Delete(k.queue, i, i+1)
		}
		return out
	}
	if k.starting && k.own.same(&t) {
		panic(fmt.Sprintf("core: worker %d: its work policy cancels a task that is starting; it must assign a smaller range instead", w.me))
	}
	if now := w.taskBeingComputed(); now != nil && now.same(&t) {
		e := computeEffect(*now)
		e.Kind, e.Dst = Cancel, t.To
		return append(out, e)
	}
	return out
}

// taskBeingComputed is the task whose Compute was given and whose Forwarded has not arrived; nil: none.
func (w *Worker) taskBeingComputed() *Task {
	switch {
	case w.state == Computing && w.head.Kind == 0 && w.work.inExtra:
		return &w.work.extra
	case w.early.nextStarted || w.state == Computing && w.head.Kind == 0:
		return &w.work.own
	}
	return nil
}

// taskDone ends the computation of a task: its gradients are being pushed.
func (w *Worker) taskDone(out []Effect) []Effect {
	w.state = Pushing
	if w.work != nil {
		out = w.tellWork(WorkEvent{Kind: Computed, Task: w.task(), Samples: w.head.Samples}, out)
	}
	return w.advance(out)
}

// noteOwedPart notes a push that no reply follows, such as a part of another worker's iteration. So that the push is not
// lost, the worker does not leave before the server has acknowledged it.
func (w *Worker) noteOwedPart(s int32) {
	if w.pullsAhead() || w.isInExtra() && w.work.extra.Owner != w.me {
		w.work.owed = append(w.work.owed, owedPart{w.task(), s})
	}
}

func (w *Worker) owesParts() bool { return w.work != nil && len(w.work.owed) > 0 }

// acknowledged notes an acknowledgement. The acknowledgement of a duplicate changes nothing.
func (w *Worker) acknowledged(m wire.Header, out []Effect) []Effect {
	if w.work == nil {
		return out
	}
	t := Task{Owner: m.Owner, Iter: m.Iter, Part: m.Part}
	w.work.owed = slices.DeleteFunc(w.work.owed, func(o owedPart) bool { return o.shard == m.Shard && o.task.same(&t) })
	return w.advance(out)
}

// checkWork verifies that a worker with a work policy keeps no copies.
func (w *Worker) checkWork() error {
	for s := range w.shards {
		if w.work != nil && w.kind(int32(s)) != scheme.Pulled {
			return fmt.Errorf("core: worker %d keeps a copy of shard %d and has a work policy", w.me, s)
		}
	}
	return nil
}
