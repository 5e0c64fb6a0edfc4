package sim

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// What the tests of this room break, or look into.

// LoseMessage loses the next message, LoseComputed the end of the next computing.
func (s *Simulation) LoseMessage() { s.lose1(evControl) }

func (s *Simulation) LoseComputed() { s.lose1(evComputed) }

func (s *Simulation) lose1(kind eventKind) {
	for {
		if e, from := s.q.first(); e.kind == kind {
			s.q.pop(from)
			return
		}
		s.Next()
	}
}

// LoseBytes makes the counts of bytes wrong.
func (s *Simulation) LoseBytes(n int64) { s.traffic.sent += n }

// RepeatMessage gives server 0 the next message twice, and a reply that has left without one.
func (s *Simulation) RepeatMessage() {
	s.Next()
	e, _ := s.q.first()
	id := int32(len(s.workers))
	s.serve(event{kind: evControl, node: id, arg: s.traffic.messages.put(s.traffic.messages.all[e.arg])})
	s.stepServer(&s.servers[0], id, core.Input{Kind: core.ReplySent})
}

// ReleaseEarly runs on until a law is broken, and answers who comes to the barrier at once. It is false if no law was broken.
func (s *Simulation) ReleaseEarly() bool {
	for s.broken == "" {
		if e, from := s.q.first(); e != nil && e.kind == evControl && e.node == s.rank0() {
			m := s.traffic.messages.take(s.q.pop(from).arg)
			m.head.Kind = wire.Release
			s.control(m.head.Worker, m, false)
			continue
		}
		if !s.Next() {
			return false
		}
	}
	return true
}

// EndTaskAt moves the end of the task that worker 0 computes, as soon as both workers compute. grain: the samples of its next step; 0: as
// before.
func (s *Simulation) EndTaskAt(limit, grain int32) {
	for !s.workers[0].pass.busy || !s.workers[1].pass.busy {
		s.Next()
	}
	s.workers[0].tasks.limit = limit
	if grain > 0 {
		s.workers[0].tasks.task.Grain = grain
	}
}

// Failure is the failure of a run in which a node has panicked.
func (s *Simulation) Failure(what string) *Failure { return s.failure(what) }

// IsOver says whether all nodes are done, Broken which law is broken.
func (s *Simulation) IsOver() bool { return s.undone == 0 }

func (s *Simulation) Broken() string { return s.broken }

// Pushes lists the transfers of pushes on their way.
func (s *Simulation) Pushes() (all []Transfer) {
	free := map[int32]bool{}
	for _, i := range s.traffic.transfers.free {
		free[i] = true
	}
	for i, t := range s.traffic.transfers.all {
		if !t.Reply && !free[int32(i)] {
			all = append(all, t)
		}
	}
	return all
}

// TakesGrain is how long a worker computes n samples from one on.
func (s *Simulation) TakesGrain(worker int, iter, from, n int64, isFirst bool) (own, injected, late int64) {
	return s.workers[worker].takesGrain(iter, from, n, isFirst)
}

var Nanoseconds = nanoseconds
