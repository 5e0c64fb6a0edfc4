package core

import (
	"fmt"
	"slices"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// Who computes which samples (the work axis). A worker computes its own batch of every iteration, all of it, unless a Work says
// otherwise: that it computes a range of the batch, and what others have given it of theirs. What is computed of a range is pushed as one
// of the parts of its iteration (parts.go).
//
//	Work                          Worker                              driver
//	Starting ─► Assign ─────────► Compute of a range ───────────────► computes it, Grain samples at a time
//	Came ─────► Cancel ─────────► Cancel ───────────────────────────► begins none of them beyond a sample
//	                              Forwarded, PieceReady, TaskDone ◄── with what was computed
//	Computed ─► Tell ───────────► SendWorker ───────────────────────► Peer of the other worker: Came
//
// What a worker computes for another, or takes back of its own iteration, it computes when that iteration's pushes have left, into the
// memory that its next gradients take, and on the parameters that the iteration has read: its driver keeps them, for replies may
// land meanwhile. It must not wait for its own replies first, since these may wait for what another computes for it, and that one does
// for its own. So no iteration starts early. A worker that is told to stop computes what it was given first. It pulls nothing
// for it.

// Task is a range of the samples of one iteration.
type Task struct {
	Owner       int32 // whose iteration it is
	Part, Parts int32 // which of its pushes; 0 of 1: all of it
	Iter        int64
	From, To    int32 // samples of the owner's batch, [From, To); To 0: up to its end
	Grain       int32 // samples that are computed at a time, between which a Cancel is heeded; 0: all at once
}

// same says whether two are the same push of the same iteration.
func (t *Task) same(u *Task) bool { return t.Owner == u.Owner && t.Iter == u.Iter && t.Part == u.Part }

// WorkEventKind says what a Work is told.
type WorkEventKind uint8

const (
	Starting WorkEventKind = iota // the worker's next iteration: Task is all of it, until an Assign says otherwise
	Begun                         // Task, of which the worker was given a part later than Starting, is computed now
	Computed                      // Task was computed, Samples of it, and is being pushed
	Came                          // Msg came from another worker
	Leaves                        // the worker leaves the run: it computes nothing any more, for nobody
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
	Assign     OrderKind = iota // compute Task: of the worker's own iteration that is starting; or, besides, of that which it is in, or of another's
	CancelWork                  // of Task, compute no sample from To on that is not begun. One that is not begun at all is forgotten where nothing is left: somebody else owes its part
	Tell                        // send Msg to worker To, another one
)

// Order is one thing to do.
type Order struct {
	Kind OrderKind
	Task Task
	To   int32
	Msg  wire.Header // of Kind Peer
}

// Work decides what its worker computes. It is pure: a machine like a scheme or a send policy.
type Work interface {
	Step(ev WorkEvent, out []Order) []Order // appends; an event that cannot be panics
}

// working is what a worker knows of the work axis.
type working struct {
	policy  Work
	orders  []Order // scratch
	own     Task    // of the iteration that was started last
	queue   []Task  // what is to be computed besides
	helping bool    // what is computed or pushed is helps, not own
	helps   Task
	owed    []owed  // parts of others' iterations that were pushed and may not have landed
	read    []int64 // per shard: the version that the iteration has read, on which all besides is computed
	starts  bool    // the policy is being told of Starting
}

// owed is a part at one shard.
type owed struct {
	task  Task
	shard int32
}

// SetWork gives the worker a policy of its own. It is called before the first input, and StartEarly is not. All its shards must be pulled
// before every iteration, without rounds, grants and shared memory.
func (w *Worker) SetWork(p Work) {
	if w.early.on || w.round != nil || w.copies != nil || w.stiles != nil || slices.Contains(w.near, true) {
		panic(fmt.Sprintf("core: worker %d: its work is given by a policy, and it starts early, or its shards have copies, grants, rounds or shared memory", w.me))
	}
	w.work = &working{policy: p, read: make([]int64, len(w.shards))}
}

// task is what is computed and pushed.
func (w *Worker) task() Task {
	switch {
	case w.work == nil:
		return Task{Owner: w.me, Parts: 1, Iter: w.iter}
	case w.work.helping:
		return w.work.helps
	}
	return w.work.own
}

func (w *Worker) isHelping() bool { return w.work != nil && w.work.helping }

// hasHelp says whether something is to be computed besides before the next iteration starts.
func (w *Worker) hasHelp() bool { return w.work != nil && len(w.work.queue) > 0 }

// mayHelp says whether that can begin: before its first iteration a worker has no parameters.
func (w *Worker) mayHelp() bool {
	return w.hasHelp() && w.state == Waiting && !w.early.begun && w.flying == 0 && w.first >= 0
}

// computeEffect has a task computed.
func computeEffect(t Task) Effect {
	return Effect{Kind: Compute, Iter: t.Iter, Src: t.From, Dst: t.To, Slot: t.Grain,
		Msg: wire.Header{Owner: t.Owner, Part: t.Part, Parts: t.Parts, Iter: t.Iter}}
}

// Task is what a Compute or a Cancel is about.
func (e *Effect) Task() Task {
	return Task{Owner: e.Msg.Owner, Part: e.Msg.Part, Parts: e.Msg.Parts, Iter: e.Iter, From: e.Src, To: e.Dst, Grain: e.Slot}
}

// startOwn has the worker's next iteration computed, as far as it is the worker's.
func (w *Worker) startOwn(iter int64, out []Effect) []Effect {
	own := Task{Owner: w.me, Parts: 1, Iter: iter}
	if w.work == nil {
		return append(out, computeEffect(own))
	}
	w.work.own, w.work.starts = own, true
	out = w.tellWork(WorkEvent{Kind: Starting, Task: own}, out)
	w.work.starts = false
	return append(out, computeEffect(w.work.own))
}

// help has the first of these computed.
func (w *Worker) help(out []Effect) []Effect {
	k := w.work
	k.helping, k.helps = true, k.queue[0]
	k.queue = slices.Delete(k.queue, 0, 1)
	w.state, w.head = Computing, wire.Header{}
	for s := range w.shards {
		w.shards[s].ready, w.shards[s].gone = 0, 0
	}
	out = append(out, computeEffect(k.helps))
	return w.tellWork(WorkEvent{Kind: Begun, Task: k.helps}, out)
}

// tellWork tells the policy, and obeys.
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
		case Tell:
			o.Msg.Kind, o.Msg.Worker = wire.Peer, w.me
			out = append(out, Effect{Kind: SendWorker, To: o.To, Msg: o.Msg})
		}
	}
	return out
}

func (w *Worker) assign(during WorkEventKind, t Task) {
	k := w.work
	bad := t.Part < 0 || t.Part >= t.Parts || t.From < 0 || t.Grain < 0 || t.To > 0 && t.From >= t.To
	switch {
	case bad || w.state == Finished:
	case t.Owner != w.me, during != Starting && t.Iter == w.iter && !w.early.begun:
		k.queue = append(k.queue, t)
		return
	case during == Starting && t.Iter == k.own.Iter:
		k.own = t
		return
	}
	panic(fmt.Sprintf("core: worker %d: its policy assigns %+v in iteration %d", w.me, t, k.own.Iter))
}

// cancel takes the end off a task. Of what was computed already there is nothing to take.
func (w *Worker) cancel(t Task, out []Effect) []Effect {
	k := w.work
	if i := slices.IndexFunc(k.queue, func(q Task) bool { return q.same(&t) }); i >= 0 {
		q := &k.queue[i]
		if q.To = t.To; q.To <= q.From {
			k.queue = slices.Delete(k.queue, i, i+1)
		}
		return out
	}
	if k.starts && k.own.same(&t) {
		panic(fmt.Sprintf("core: worker %d: its policy cancels what is starting; it is to assign less", w.me))
	}
	if now := w.computes(); now != nil && now.same(&t) {
		e := computeEffect(*now)
		e.Kind, e.Dst = Cancel, t.To
		return append(out, e)
	}
	return out
}

// computes is the task whose Compute was given and whose Forwarded has not come; nil: none.
func (w *Worker) computes() *Task {
	switch {
	case w.state == Computing && w.head.Kind == 0 && w.work.helping:
		return &w.work.helps
	case w.early.begun || w.state == Computing && w.head.Kind == 0:
		return &w.work.own
	}
	return nil
}

// taskDone ends a task: what is there of it is being pushed.
func (w *Worker) taskDone(out []Effect) []Effect {
	w.state = Pushing
	if w.work != nil {
		out = w.tellWork(WorkEvent{Kind: Computed, Task: w.task(), Samples: w.head.Samples}, out)
	}
	return w.advance(out)
}

// owe notes that a part of another's iteration is pushed. Nobody answers it; so that it is not lost, its worker does not leave before the
// server has acknowledged it.
func (w *Worker) owe(s int32) {
	if w.isHelping() && w.work.helps.Owner != w.me {
		w.work.owed = append(w.work.owed, owed{w.work.helps, s})
	}
}

func (w *Worker) owes() bool { return w.work != nil && len(w.work.owed) > 0 }

// taken notes an acknowledgement. That of a duplicate says nothing new.
func (w *Worker) taken(m wire.Header, out []Effect) []Effect {
	if w.work == nil {
		return out
	}
	t := Task{Owner: m.Owner, Iter: m.Iter, Part: m.Part}
	w.work.owed = slices.DeleteFunc(w.work.owed, func(o owed) bool { return o.shard == m.Shard && o.task.same(&t) })
	return w.advance(out)
}

// checkWork holds the policy to what the worker can do.
func (w *Worker) checkWork() error {
	for s := range w.shards {
		if w.work != nil && w.kind(int32(s)) != scheme.Pulled {
			return fmt.Errorf("core: worker %d keeps a copy of shard %d, and a policy gives it its work", w.me, s)
		}
	}
	return nil
}
