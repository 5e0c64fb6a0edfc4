package sim

import (
	"fmt"
	"math"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// Join is a worker that died and comes back, with no more than its clock. One that is not dead then, because its work was done before
// it could die, does nothing.
type Join struct {
	Worker int
	At     time.Duration
}

// message is a control message with the life of its worker.
type message struct {
	head wire.Header
	life uint16
}

// lives says whether a worker is alive, in that life.
func (w *worker) lives(life uint16) bool { return !w.dead && w.life == life }

// back words how often workers come back, where any does.
func back(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d back", n)
}

// refuseJoins says which joins cannot be.
func refuseJoins(o *Options) error {
	n := o.Config.Simulate.Workers
	if len(o.Joins) > math.MaxUint16 {
		return fmt.Errorf("%d joins, and there may be %d", len(o.Joins), math.MaxUint16)
	}
	for _, j := range o.Joins {
		lost := false
		for _, l := range o.Losses {
			lost = lost || l.Worker == j.Worker && l.At <= j.At
		}
		switch {
		case j.Worker < 0 || j.Worker >= n || j.At < 0:
			return fmt.Errorf("join of worker %d at %v, but the workers are 0 to %d and times start at 0", j.Worker, j.At, n-1)
		case !lost:
			return fmt.Errorf("join of worker %d at %v, but it is not lost before; let it die first", j.Worker, j.At)
		}
	}
	return nil
}

// rejoin starts a worker anew, not before its servers have been told that it died.
func (s *simulation) rejoin(me int32) {
	w := &s.workers[me]
	if !w.dead {
		s.undone--
		return
	}
	if told := w.died + s.latency; s.now < told {
		s.q.after(s.now, told-s.now, evJoin, me, 0)
		return
	}
	node := s.build().Joining(int(me), int64(w.life)+1, w.node.Clock())
	node.LeadMax, node.Started, node.WaitedLast, node.Cached = w.node.LeadMax, w.node.Started, w.node.WaitedLast, w.node.Cached
	w.node, w.dead = node, false
	w.life++
	w.fresh = true
	w.waitFrom, w.lastHead = s.now, s.now
	s.joined++
	if s.real != nil {
		s.real.replicas[me].flying, s.real.replicas[me].unsent = 0, nil
		clear(s.real.replicas[me].residual) // it died with the life before
	}
	s.stepWorker(me, core.Input{Kind: core.Begin})
}

// joined: a server learns that a worker came back, and takes that for its pulls of all shards.
func (c *checker) joined(shards []int32, w int32, clock int64) {
	for _, id := range shards {
		s := &c.shards[id]
		k := &s.of[w]
		k.reached = max(k.reached, clock)
		v := s.v()
		if s.low == math.MaxInt64 && !s.agrees { // nobody was there: v is where all that was pushed ends
			v = s.closed
			for i := range s.of {
				v = max(v, min(s.of[i].reached, s.until))
			}
		}
		k.fed, k.beside = false, false
		s.forgotten(w)
		k.gone, k.clock, k.wants = false, max(v, k.reached), k.reached
		s.lowest()
		s.changes()
	}
}
