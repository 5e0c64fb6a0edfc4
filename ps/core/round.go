package core

import (
	"fmt"

	"fluentps/comm/wire"
)

// Rounds are how applications of PS-Lite are synchronous (Push, Wait, the barrier of the scheduler, Pull, as its code has
// them [C]); for comparison. A worker pushes all shards, waits until each push is acknowledged, tells the scheduler, and
// pulls only when the scheduler has heard that from all workers:
//
//	Worker                        Server                 Scheduler
//	Send Push, SendPiece ───────► landed: Send Ack
//	all acknowledged: SendBarrier Barrier ───────────► of all workers: Send Release to each
//	Send Pull of every shard ───► Reply
//
// With the bsp scheme on the servers, a pull behind the barrier finds every push landed and is never delayed.

// round is where a worker stands in it.
type round struct {
	open int  // shards whose push of this iteration is not acknowledged; each is once
	at   bool // the barrier was told, the release has not come
}

// InRounds makes the worker work in rounds. It is called before the first input, and StartEarly is not.
func (w *Worker) InRounds() {
	if w.early.on {
		panic("core: InRounds after StartEarly: rounds overlap with nothing")
	}
	w.round = &round{open: len(w.shards)}
}

// AtBarrier says whether the worker waits for the others at the barrier.
func (w *Worker) AtBarrier() bool { return w.round != nil && w.round.at }

// inRound takes an acknowledgement, or the release from the barrier. Without rounds an acknowledgement says that a
// duplicate of ours was seen and ignored: nothing waits for it.
func (w *Worker) inRound(in Input, out []Effect) []Effect {
	r, m := w.round, in.Msg
	if m.Kind == wire.Release {
		w.must(r != nil && r.at && m.Iter == w.iter, in)
		*r = round{open: len(w.shards)}
		for s := range w.shards {
			out = w.pull(int32(s), out)
		}
		return out
	}
	if r == nil {
		return w.taken(m, out)
	}
	w.must(m.Iter == w.iter && r.open > 0, in)
	if r.open--; r.open > 0 {
		return out
	}
	r.at = true
	return append(out, Effect{Kind: SendBarrier, Msg: wire.Header{Kind: wire.Barrier, Worker: w.me, Iter: w.iter}})
}

// Scheduler is the node that all workers meet at.
type Scheduler struct {
	iter []int64 // per worker: the iteration whose barrier it has come to, -1 before the first
	come int     // workers that have come to the barrier that is open
}

// NewScheduler makes the scheduler of a run whose workers all begin and end with the same iteration.
func NewScheduler(workers int) *Scheduler {
	s := &Scheduler{iter: make([]int64, workers)}
	for w := range s.iter {
		s.iter[w] = -1
	}
	return s
}

// Step takes a worker's Barrier, and lets all go with the last one's.
func (s *Scheduler) Step(in Input, out []Effect) []Effect {
	m := in.Msg
	if in.Kind != Arrived || m.Kind != wire.Barrier || m.Iter <= s.iter[m.Worker] {
		panic(fmt.Sprintf("core: scheduler: %v must not come in state %v", in, s))
	}
	s.iter[m.Worker] = m.Iter
	if s.come++; s.come < len(s.iter) {
		return out
	}
	s.come = 0
	for w := range s.iter {
		out = append(out, Effect{Kind: Send, To: int32(w), Msg: wire.Header{Kind: wire.Release, Worker: int32(w), Iter: s.iter[w]}})
	}
	return out
}

// Check holds the barrier to its meaning: nobody is an iteration ahead of one that has not come.
func (s *Scheduler) Check() error {
	lo, hi := s.iter[0], s.iter[0]
	for _, i := range s.iter {
		lo, hi = min(lo, i), max(hi, i)
	}
	if hi-lo > 1 || s.come == 0 && hi != lo {
		return fmt.Errorf("core: %v: workers are at barriers of different iterations", s)
	}
	return nil
}

func (s *Scheduler) String() string {
	return fmt.Sprintf("scheduler come=%d of %d, at %v", s.come, len(s.iter), s.iter)
}
