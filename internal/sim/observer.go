package sim

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Observer hears what happens in a run, in the order of the events. It changes nothing. With Simulation.Fail it ends a run that has
// broken a law. Parameters that are pointers are valid during the call only.
type Observer interface {
	// WorkerDid tells of a Send or an Adopt of a worker's node, before that is obeyed; ServerDid of every effect of a server's node.
	WorkerDid(worker int32, e *core.Effect)
	ServerDid(e *core.Effect)
	// WorkerStarts tells that a worker reads its copy of a shard for the iteration that the shard counts as clock. isFresh: it is the
	// worker's first iteration since it has rejoined.
	WorkerStarts(worker, shard int32, clock int64, isFresh bool)
	WorkerLost(worker int32)
	// ServerHears tells of a message that has reached a server, before its node takes it; ServerLoses, that a server learns of the death
	// of a worker.
	ServerHears(server int32, m wire.Header)
	ServerLoses(server, worker int32)
	// PushLanded tells that a piece of a push has landed.
	PushLanded(shard, worker int32)
	// ReplyLeft tells that a reply no longer reads its buffer; ReplyPieceLeft, that one of the pieces of a reply which leave one by one
	// does not.
	ReplyLeft(shard, buf int32)
	ReplyPieceLeft(shard, worker int32)
	// ReplyLanded tells that a reply has landed; isPiece: one piece of it.
	ReplyLanded(shard, worker int32, isPiece bool)

	StepObserver
	TaskObserver

	// Inspect may look at a node between two of its steps.
	Inspect(n core.Node)
	// End tells that all nodes are done and that nothing is in flight.
	End()
}

// StepObserver hears of the steps that workers take on their own between two exchanges (internal/core/steps).
type StepObserver interface {
	StepTaken(worker int32, samples int64)
	// PushMade tells that the push of an iteration was made of samples, and that the worker counts pushed of its own for it.
	PushMade(worker int32, iter, samples, pushed int64)
	// StepsLost tells that a worker is about to forget the steps that it has not pushed.
	StepsLost(worker int32)
}

// TaskObserver hears of the policies that say which samples the workers compute, and of their tasks.
type TaskObserver interface {
	// PolicyHears tells of an event before the policy hears of it; PolicyOrders, of an answer of the policy.
	PolicyHears(worker int32, ev core.WorkEvent)
	PolicyOrders(worker int32, during core.WorkEventKind, o core.Order)
	// TaskComputed tells that so many samples of a worker's task were computed, and that no more will be; TaskTimedOut, that no further
	// grain begins; TaskDone, that all pushes of the task have begun.
	TaskComputed(worker int32, samples int64)
	TaskTimedOut(worker int32)
	TaskDone(worker int32, t core.Task)
}

// Nobody is an observer that does not listen.
type Nobody struct{}

func (Nobody) WorkerDid(int32, *core.Effect)                      {}
func (Nobody) ServerDid(*core.Effect)                             {}
func (Nobody) WorkerStarts(int32, int32, int64, bool)             {}
func (Nobody) WorkerLost(int32)                                   {}
func (Nobody) ServerHears(int32, wire.Header)                     {}
func (Nobody) ServerLoses(int32, int32)                           {}
func (Nobody) PushLanded(int32, int32)                            {}
func (Nobody) ReplyLeft(int32, int32)                             {}
func (Nobody) ReplyPieceLeft(int32, int32)                        {}
func (Nobody) ReplyLanded(int32, int32, bool)                     {}
func (Nobody) StepTaken(int32, int64)                             {}
func (Nobody) PushMade(int32, int64, int64, int64)                {}
func (Nobody) StepsLost(int32)                                    {}
func (Nobody) PolicyHears(int32, core.WorkEvent)                  {}
func (Nobody) PolicyOrders(int32, core.WorkEventKind, core.Order) {}
func (Nobody) TaskComputed(int32, int64)                          {}
func (Nobody) TaskTimedOut(int32)                                 {}
func (Nobody) TaskDone(int32, core.Task)                          {}
func (Nobody) Inspect(core.Node)                                  {}
func (Nobody) End()                                               {}

// watched is a policy whose events and orders the observer hears.
type watched struct {
	core.Work
	s  *Simulation
	me int32
}

// Step steps the policy. The observer hears of the event first.
func (w *watched) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	w.s.observer.PolicyHears(w.me, ev)
	from := len(out)
	out = w.Work.Step(ev, out)
	for i := range out[from:] {
		w.s.observer.PolicyOrders(w.me, ev.Kind, out[from+i])
	}
	return out
}

// Fail ends the run after the present event, because a law is broken. The first failure counts.
func (s *Simulation) Fail(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}
