package core

import (
	"time"

	"fluentps/internal/comm/wire"
)

// Who computes which samples (the work axis). A worker computes all of its own batch in every iteration, unless a Work
// says otherwise: that it computes a range of its batch, and ranges that other workers have given it. The gradients of
// a range are pushed as one of the parts of its iteration (servernode/parts.go).
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

// Same says whether two tasks are the same push of the same iteration.
func (t *Task) Same(u *Task) bool { return t.Owner == u.Owner && t.Iter == u.Iter && t.Part == u.Part }

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

// ComputeTask tells the driver to compute a task.
func ComputeTask(t Task) Effect {
	return Effect{Kind: Compute, Iter: t.Iter, Src: t.From, Dst: t.To, Slot: t.Grain, At: t.Until,
		Msg: wire.Header{Owner: t.Owner, Part: t.Part, Parts: t.Parts, Iter: t.Iter, Flags: uint8(t.Keep), Samples: int64(t.Threads)}}
}

// Task is the task of a Compute or a Cancel.
func (e *Effect) Task() Task {
	return Task{Owner: e.Msg.Owner, Part: e.Msg.Part, Parts: e.Msg.Parts, Iter: e.Iter, From: e.Src, To: e.Dst,
		Grain: e.Slot, Until: e.At, Keep: Keeping(e.Msg.Flags), Threads: int32(e.Msg.Samples)}
}

// Learner is a Work that learns while it runs. Checkpoints have its memory.
type Learner interface {
	Work
	Memory() []float64             // what it has learned, in finite numbers; nil: nothing
	Recall(memory []float64) error // before its first step; fails for what Memory of this policy never returns
}
