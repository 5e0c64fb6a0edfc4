package workernode

import (
	"fmt"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// workState is a worker's state on the work axis.
type workState struct {
	policy  core.Work
	workers int32
	gone    []bool       // per worker: it has left or was lost
	orders  []core.Order // scratch
	own     core.Task    // the task of the iteration that was started last
	queue   []core.Task  // extra tasks that have not begun
	inExtra bool         // the task that is computed or pushed is extra, not own
	// the extra task that began last
	extra       core.Task
	owed        []owedPart // parts of others' iterations that were pushed and are not acknowledged
	readVersion []int64    // per shard: the version that the iteration has read; extra tasks are computed on it
	starting    bool       // the policy is being told of Starting
	ahead       bool       // the worker pulls when an iteration starts (ahead.go)
	silent      int        // then: shards that have not replied
}

// owedPart is a part of another worker's iteration, at one shard.
type owedPart struct {
	task  core.Task
	shard int32
}

// SetWork gives the worker a work policy. It must be called before the first input, and without StartEarly. All shards
// of the worker must be pulled before every iteration, without rounds, grants and shared memory.
func (w *Worker) SetWork(p core.Work, workers int) {
	if w.early.on || w.round != nil || w.copies != nil || w.grants.gates != nil ||
		slices.ContainsFunc(w.shards, func(sh workerShard) bool { return sh.near }) {
		panic(fmt.Sprintf("core: worker %d: a work policy does not go with early starts, copies, grants, rounds or shared memory", w.me))
	}
	w.work = &workState{policy: p, workers: int32(workers), gone: make([]bool, workers), readVersion: make([]int64, len(w.shards))}
}

// task is the task that is computed or pushed.
func (w *Worker) task() core.Task {
	switch {
	case w.work == nil:
		return core.Task{Owner: w.me, Parts: 1, Iter: w.iter}
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
	return w.hasExtra() && w.state == core.Waiting && !w.early.nextStarted && w.sending.inFlight == 0 && w.first >= 0
}

// startOwn starts the worker's next iteration, or the range of it that the policy leaves to the worker.
func (w *Worker) startOwn(iter int64, out []core.Effect) []core.Effect {
	own := core.Task{Owner: w.me, Parts: 1, Iter: iter}
	if w.work == nil {
		return append(out, core.ComputeTask(own))
	}
	w.work.own, w.work.starting = own, true
	out = w.tellWork(core.WorkEvent{Kind: core.Starting, Task: own}, out)
	w.work.starting = false
	return append(out, core.ComputeTask(w.work.own))
}

// startExtra starts the first extra task of the queue.
func (w *Worker) startExtra(out []core.Effect) []core.Effect {
	k := w.work
	k.inExtra, k.extra = true, k.queue[0]
	k.queue = slices.Delete(k.queue, 0, 1)
	w.state, w.head = core.Computing, wire.Header{}
	for s := range w.shards {
		w.shards[s].ready, w.shards[s].released = 0, 0
	}
	out = append(out, core.ComputeTask(k.extra))
	return w.tellWork(core.WorkEvent{Kind: core.Begun, Task: k.extra}, out)
}

// tellWork tells the policy of an event and obeys its orders.
func (w *Worker) tellWork(ev core.WorkEvent, out []core.Effect) []core.Effect {
	k := w.work
	ev.At = w.now
	k.orders = k.policy.Step(ev, k.orders[:0])
	for i := range k.orders {
		o := &k.orders[i]
		switch o.Kind {
		case core.Assign:
			w.assign(ev.Kind, o.Task)
		case core.CancelWork:
			out = w.cancel(o.Task, out)
		case core.Divide:
			w.divide(o.Task)
		case core.Tell:
			o.Msg.Kind, o.Msg.Worker = wire.Peer, w.me
			out = append(out, core.Effect{Kind: core.SendWorker, To: o.To, Msg: o.Msg})
		}
	}
	return out
}

func (w *Worker) assign(during core.WorkEventKind, t core.Task) {
	k := w.work
	bad := t.Part < 0 || t.Parts > 0 && t.Part >= t.Parts || during == core.Starting && t.Owner == w.me && t.Parts < 1 ||
		t.From < 0 || t.Grain < 0 || t.To > 0 && t.From >= t.To
	switch {
	case bad || w.state == core.Finished:
	case t.Owner != w.me, during != core.Starting && t.Iter == w.iter && !w.early.nextStarted:
		k.queue = append(k.queue, t)
		return
	case during == core.Starting && t.Iter == k.own.Iter:
		k.own = t
		return
	}
	panic(fmt.Sprintf("core: worker %d: its work policy assigns %+v in iteration %d, which is not allowed", w.me, t, k.own.Iter))
}

// divide gives parts of the worker's own iteration to others. Its own part, which is pushed last at the earliest, tells
// the servers how many parts there are.
func (w *Worker) divide(t core.Task) {
	k := w.work
	if now := w.taskBeingComputed(); t.Owner != w.me || t.Iter != k.own.Iter || t.Parts <= k.own.Parts || !k.starting &&
		(now == nil || now != &k.own) {
		panic(fmt.Sprintf("core: worker %d: its work policy divides %+v, which is not allowed while %+v is computed", w.me, t, k.own))
	}
	k.own.Parts = t.Parts
}

// stepsOn notes that the driver begins a step of the task that is computed.
func (w *Worker) stepsOn(in core.Input, out []core.Effect) []core.Effect {
	t := w.taskBeingComputed()
	w.must(t != nil, in)
	return w.tellWork(core.WorkEvent{Kind: core.Stepped, Task: *t, Samples: in.Msg.Samples}, out)
}

// fixed tells the policy that a task can no longer be changed, before the header of its push is made.
func (w *Worker) fixed(in core.Input, out []core.Effect) []core.Effect {
	if w.work == nil {
		return out
	}
	return w.tellWork(core.WorkEvent{Kind: core.Fixed, Task: w.task(), Samples: in.Msg.Samples}, out)
}

// peer tells the policy of a message from another worker's, or that the other worker has left or was lost.
func (w *Worker) peer(in core.Input, out []core.Effect) []core.Effect {
	w.must(w.work != nil && in.Msg.Worker != w.me, in)
	ev := core.WorkEvent{Kind: core.Came, Msg: in.Msg}
	if in.Msg.Flags == wire.Gone {
		ev = core.WorkEvent{Kind: core.Gone, Task: core.Task{Owner: in.Msg.Worker}}
		w.work.gone[in.Msg.Worker] = true
	}
	out = w.tellWork(ev, out)
	if w.state == core.Finished && !w.done {
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
func (w *Worker) leaveWork(out []core.Effect) []core.Effect {
	if w.work == nil {
		return out
	}
	out = w.tellWork(core.WorkEvent{Kind: core.Leaves}, out)
	for to := range w.work.workers {
		if to != w.me {
			out = append(out, core.Effect{Kind: core.SendWorker, To: to, Msg: wire.Header{Kind: wire.Peer, Worker: w.me, Flags: wire.Gone}})
		}
	}
	return out
}

// cancel removes the samples from t.To on from a task. It does nothing for samples that were computed already.
func (w *Worker) cancel(t core.Task, out []core.Effect) []core.Effect {
	k := w.work
	if i := slices.IndexFunc(k.queue, func(q core.Task) bool { return q.Same(&t) }); i >= 0 {
		q := &k.queue[i]
		if q.To == 0 || t.To < q.To {
			q.To = t.To
		}
		if q.To <= q.From {
			k.queue = slices.Delete(k.queue, i, i+1)
		}
		return out
	}
	if k.starting && k.own.Same(&t) {
		panic(fmt.Sprintf("core: worker %d: its work policy cancels a task that is starting; it must assign a smaller range instead", w.me))
	}
	if now := w.taskBeingComputed(); now != nil && now.Same(&t) {
		e := core.ComputeTask(*now)
		e.Kind, e.Dst = core.Cancel, t.To
		return append(out, e)
	}
	return out
}

// taskBeingComputed is the task whose Compute was given and whose Forwarded has not arrived; nil: none.
func (w *Worker) taskBeingComputed() *core.Task {
	switch {
	case w.state == core.Computing && w.head.Kind == 0 && w.work.inExtra:
		return &w.work.extra
	case w.early.nextStarted || w.state == core.Computing && w.head.Kind == 0:
		return &w.work.own
	}
	return nil
}

// taskDone ends the computation of a task: its gradients are being pushed.
func (w *Worker) taskDone(out []core.Effect) []core.Effect {
	w.state = core.Pushing
	if w.work != nil {
		out = w.tellWork(core.WorkEvent{Kind: core.Computed, Task: w.task(), Samples: w.head.Samples}, out)
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
func (w *Worker) acknowledged(m wire.Header, out []core.Effect) []core.Effect {
	if w.work == nil {
		return out
	}
	t := core.Task{Owner: m.Owner, Iter: m.Iter, Part: m.Part}
	w.work.owed = slices.DeleteFunc(w.work.owed, func(o owedPart) bool { return o.shard == m.Shard && o.task.Same(&t) })
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

// Learned is what the worker's policy has learned; nil: nothing.
func (w *Worker) Learned() []float64 {
	if w.work == nil {
		return nil
	}
	if p, ok := w.work.policy.(core.Learner); ok {
		return p.Memory()
	}
	return nil
}

// Recall gives the worker's policy what an earlier one has learned. It must be called before the first input.
func (w *Worker) Recall(learned []float64) error {
	if w.work == nil || learned == nil {
		return nil
	}
	if p, ok := w.work.policy.(core.Learner); ok {
		return p.Recall(learned)
	}
	return nil
}
