package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Join makes a worker that died rejoin the run. It keeps nothing but its clock. A Join of a worker that is not dead has no effect:
// the worker had finished before its loss.
type Join struct {
	Worker int
	At     time.Duration
}

// message is a control message with the life of its worker, in which it was sent or is to arrive.
type message struct {
	head wire.Header
	life uint16
}

// isAlive says whether a worker is alive, and in that life.
func (w *worker) isAlive(life uint16) bool { return !w.dead && w.life == life }

// rejoinText says how many workers rejoin, unless none does.
func rejoinText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d back", n)
}

// refuseJoins fails for a join that cannot happen.
func refuseJoins(o *Options) error {
	n := o.Config.Simulate.Workers
	if len(o.Joins) > math.MaxUint16 {
		return fmt.Errorf("%d joins, but there may be at most %d", len(o.Joins), math.MaxUint16)
	}
	if len(o.Joins) > 0 && len(o.Config.Awaits()) > 0 {
		return errors.New("a worker that comes back may skip the iteration that announces a change, so a rule with " +
			"until: {straggler: ...} does not go with --join; leave one of them out")
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
			return fmt.Errorf("join of worker %d at %v, but this worker is not lost before; let it die first", j.Worker, j.At)
		}
	}
	return nil
}

// rejoin starts a worker anew, but not before its servers know that it died.
func (s *Simulation) rejoin(me int32) {
	w := &s.workers[me]
	if !w.dead {
		s.undone--
		return
	}
	if noticed := w.died + s.latency; s.now < noticed {
		s.q.after(s.now, noticed-s.now, evJoin, me, 0)
		return
	}
	node := s.Build().Joining(int(me), int64(w.life)+1, w.node.Clock())
	node.Counts = w.node.Counts
	w.node, w.dead = node, false
	w.life++
	w.fresh = true
	s.leaveSteps(me)
	w.waitFrom, w.lastHead = s.now, s.now
	s.counts.joined++
	if s.values != nil {
		s.values.Rejoined(me)
	}
	s.stepWorker(me, core.Input{Kind: core.Begin})
}
