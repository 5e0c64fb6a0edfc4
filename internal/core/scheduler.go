package core

import (
	"fmt"

	"fluentps/internal/comm/wire"
)

// Rounds are the way in which synchronous applications of PS-Lite work (Push, Wait, the scheduler's barrier, Pull, as
// in its code [C]). They are here for comparison. A worker pushes all shards and waits until each push is acknowledged.
// Then it tells the scheduler, and pulls when the scheduler has heard from all workers:
//
//	Worker                        Server                 Scheduler
//	Send Push, SendPiece ───────► landed: Send Ack
//	all acknowledged: SendBarrier Barrier ───────────► of all workers: Send Release to each
//	Send Pull of every shard ───► Reply
//
// With the bsp scheme on the servers, a pull behind the barrier finds every push landed and is never delayed.

// Scheduler is the node that keeps the barrier of all workers.
type Scheduler struct {
	iter    []int64 // per worker: the iteration at whose barrier it arrived last, -1 before the first
	arrived int     // workers at the barrier that is open
}

// NewScheduler makes the scheduler of a run whose workers all begin and end with the same iteration.
func NewScheduler(workers int) *Scheduler {
	s := &Scheduler{iter: make([]int64, workers)}
	for w := range s.iter {
		s.iter[w] = -1
	}
	return s
}

// Step handles a worker's Barrier. The last worker's Barrier releases all.
func (s *Scheduler) Step(in Input, out []Effect) []Effect {
	m := in.Msg
	if in.Kind != Arrived || m.Kind != wire.Barrier || m.Iter <= s.iter[m.Worker] {
		panic(fmt.Sprintf("core: scheduler: input %v is not allowed in state %v", in, s))
	}
	s.iter[m.Worker] = m.Iter
	if s.arrived++; s.arrived < len(s.iter) {
		return out
	}
	s.arrived = 0
	for w := range s.iter {
		out = append(out, Effect{Kind: Send, To: int32(w), Msg: wire.Header{Kind: wire.Release, Worker: int32(w), Iter: s.iter[w]}})
	}
	return out
}

// Check verifies the barrier: no worker is an iteration ahead of a worker that has not arrived.
func (s *Scheduler) Check() error {
	lo, hi := s.iter[0], s.iter[0]
	for _, i := range s.iter {
		lo, hi = min(lo, i), max(hi, i)
	}
	if hi-lo > 1 || s.arrived == 0 && hi != lo {
		return fmt.Errorf("core: %v: workers are at barriers of different iterations", s)
	}
	return nil
}

func (s *Scheduler) String() string {
	return fmt.Sprintf("scheduler arrived=%d of %d, at %v", s.arrived, len(s.iter), s.iter)
}
