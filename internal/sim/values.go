package sim

import (
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
)

// Values are the parameters and gradients of a run that is not in timing mode. They follow from the decisions of the nodes. They change
// these only by the norms of pushes, and by Simulation.Stop.
type Values interface {
	// Compute computes the gradients of a worker's iteration, at the time at which the last of its parameters has arrived. Loss is what
	// its push reports.
	Compute(worker int32, iter int64)
	Loss(worker int32) (loss float64, correct int64)

	StepValues
	TaskValues

	// WorkerDid obeys an effect of a worker's node on its copy, ServerDid one of a server's node on its shards.
	WorkerDid(worker int32, e *core.Effect)
	ServerDid(e *core.Effect)
	// Encode encodes a piece that its worker sends in an iteration. Everything later sees the values that will arrive.
	Encode(worker int32, p *shard.Piece, iter int64) (bytes int64)
	// PushSent, PushLeft and PushLanded follow transfer i of a piece of a push: it starts, its last byte has left, its last byte has
	// landed in a slot. Lost ends a transfer that will not land.
	PushSent(i int32, t Transfer)
	PushLeft(i int32, t Transfer)
	PushLanded(i int32, t Transfer, slot int32)
	Lost(i int32)
	// ReplySent tells that the last byte of a reply, or of a piece of one, has left, ReplyLanded that it has landed.
	ReplySent(t Transfer)
	ReplyLanded(t Transfer)
	// Norms are those of the push in a slot, whose mean is over so many samples, and of its server's parameters.
	Norms(shard, slot int32, samples int64) (norm2, normInf, normW float32)

	// Squares is the sum of the squares of weight * the pending sums of a shard.
	Squares(shard int32, weight float64) float64

	// Rejoined tells that a worker that was lost begins anew; Assigned, that its rows change (Dealt).
	Rejoined(worker int32)
	Assigned(worker int32)

	// Text describes the values in the cost model. Finish writes them to the result.
	Text() string
	Finish(r *Result)
}

// StepValues are those of workers that take steps of their own between two exchanges (internal/core/steps).
type StepValues interface {
	Vectors(worker int32, o *steps.Options) steps.Vectors
	TakeStep(worker int32, own *steps.Worker) (loss float64, correct int64)
	MakePush(worker int32, iter int64, own *steps.Worker)
}

// TaskValues are those of workers whose policy says which samples they compute.
type TaskValues interface {
	// BeginTasks begins the worker's own iteration, on whose parameters it computes all tasks.
	BeginTasks(worker int32)
	ComputeGrain(worker int32, g Grain) (loss float64, correct int64)
	// Keep keeps the gradients that were just computed, to be pushed later; isMore adds them to those kept last. Restore makes the i-th
	// ones that were kept in this iteration those that are pushed.
	Keep(worker, owner int32, isMore bool)
	Restore(worker int32, i int)
}

// Grain is a part of a task that is computed at once: N samples from From on.
type Grain struct {
	Task    core.Task
	From, N int32
	IsFirst bool // of its task
	// Last is the number of samples of the task, all grains together, if the grain is its last one; -1: another follows.
	Last int64
}
