package sim

import "fluentps/ps/core"

// watched is a policy, with the checker listening.
type watched struct {
	core.Work
	c  *taskCheck
	me int32
}

// watch makes the checker listen to a policy.
func (c *taskCheck) watch(me int32, p core.Work) core.Work { return &watched{p, c, me} }

// Step steps the policy. The checker hears of the event first.
func (w *watched) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	w.c.hears(w.me, &ev)
	from := len(out)
	out = w.Work.Step(ev, out)
	for i := range out[from:] {
		w.c.ordered(w.me, ev.Kind, &out[from+i])
	}
	return out
}

// usesThreads checks that threads move between the workers of a host only, and only when an iteration starts: each has at least one and at
// most work.threads_max, and together they have no more than at first. A thread that is on its way computes for nobody.
func (c *taskCheck) usesThreads(me int32, during core.WorkEventKind, t *core.Task) {
	most, base := int32(c.s.cfg.Work.ThreadsMax), int32(c.s.cfg.Device.Threads)
	switch isOwn := during == core.Starting && t.Owner == me; {
	case (t.Threads > 0) != (isOwn && most > 0):
		c.fail("threads: worker %d computes %+v with %d threads; they are given when its own iteration starts, if work.threads_max (%d) is set", me, t, t.Threads, most)
		return
	case t.Threads == 0:
		return
	case t.Threads > most:
		c.fail("threads: worker %d has %d threads, at most %d are allowed", me, t.Threads, most)
	}
	c.workers[me].threads = t.Threads
	all, allowed := int32(0), int32(0)
	for w := range c.workers {
		if c.s.workers[w].host == c.s.workers[me].host {
			n := c.workers[w].threads
			if n == 0 {
				n = base // its first iteration has not begun
			}
			all, allowed = all+n, allowed+base
		}
	}
	if all > allowed {
		c.fail("threads: the workers of host %d have %d threads, and began with %d", c.s.workers[me].host, all, allowed)
	}
}
