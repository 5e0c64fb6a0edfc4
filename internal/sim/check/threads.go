package check

import "fluentps/internal/core"

// PolicyHears, PolicyOrders, TaskComputed, TaskTimedOut, TaskDone and WorkerLost hear of tasks.
func (c *checker) PolicyHears(worker int32, ev core.WorkEvent) { c.tasks.hears(worker, &ev) }

func (c *checker) PolicyOrders(worker int32, during core.WorkEventKind, o core.Order) {
	c.tasks.ordered(worker, during, &o)
}

func (c *checker) TaskComputed(worker int32, samples int64) { c.tasks.computed(worker, samples) }

func (c *checker) TaskTimedOut(worker int32) { c.tasks.endsInTime(worker) }

func (c *checker) TaskDone(worker int32, t core.Task) { c.tasks.doneAt(worker, t) }

func (c *checker) WorkerLost(worker int32) {
	if c.tasks != nil {
		c.tasks.lost(worker)
	}
}

// usesThreads checks that threads move between the workers of a host only, and only when an iteration starts: each has at least one and at
// most work.threads_max, and together they have no more than at first. A thread that is on its way computes for nobody.
func (c *taskCheck) usesThreads(me int32, during core.WorkEventKind, t *core.Task) {
	most, base := int32(c.s.Config().Work.ThreadsMax), int32(c.s.Config().Device.Threads)
	switch isOwn := during == core.Starting && t.Owner == me; {
	case (t.Threads > 0) != (isOwn && most > 0):
		c.fail("threads: worker %d computes %+v with %d threads; they are given when its own iteration starts, if "+
			"work.threads_max (%d) is set", me, t, t.Threads, most)
		return
	case t.Threads == 0:
		return
	case t.Threads > most:
		c.fail("threads: worker %d has %d threads, at most %d are allowed", me, t.Threads, most)
	}
	c.workers[me].threads = t.Threads
	all, allowed := int32(0), int32(0)
	for w := range c.workers {
		if c.s.Host(int32(w)) == c.s.Host(me) {
			n := c.workers[w].threads
			if n == 0 {
				n = base // its first iteration has not begun
			}
			all, allowed = all+n, allowed+base
		}
	}
	if all > allowed {
		c.fail("threads: the workers of host %d have %d threads, and began with %d", c.s.Host(me), all, allowed)
	}
}
