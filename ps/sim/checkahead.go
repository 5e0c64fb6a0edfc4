package sim

import (
	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// The laws of the work axis where workers pull ahead (ps/core/ahead.go): several workers push for one owner, and a worker pushes an
// iteration to those shards only that have not closed it.

// doneAt notes that all pushes of a task have begun.
func (c *taskCheck) doneAt(me int32, t core.Task) {
	key := partKey{me, t.Owner, t.Part, t.Iter}
	if m, ok := c.made[key]; ok {
		m.isDone = true
		c.note(key, m)
	}
}

// note notes how far a push is; when it is at its end, it is forgotten.
func (c *taskCheck) note(key partKey, m samples) {
	if c.made[key] = m; m.isDone && m.flying == 0 {
		delete(c.made, key)
	}
}

// ownersOf are the workers whose iterations a worker pushes, without being asked.
func (c *taskCheck) ownersOf(w int32) []int32 {
	if a := c.s.axes.Ahead; a != nil && a.Owners != nil {
		return a.Owners[w]
	}
	return []int32{w}
}

// partSent notes that a push begins.
func (c *checker) partSent(m wire.Header) {
	if c.tasks == nil {
		return
	}
	key := partKey{m.Worker, m.Owner, m.Part, m.Iter}
	made, ok := c.tasks.made[key]
	if !ok || made.isDone {
		c.fail("exactly once: worker %d pushes part %d of worker %d's iteration %d, which it has not just computed", m.Worker, m.Part, m.Owner, m.Iter)
	}
	made.flying++
	c.tasks.made[key] = made
}

// leftTasks records that a shard learns that a worker is gone. It drops what it has of the iterations that nobody pushes any more.
func (c *checker) leftTasks(shard, w int32) {
	p, s := &c.tasks.shards[shard], &c.shards[shard]
	if p.left[w] {
		return
	}
	p.left[w] = true
	p.flights[w] = flight{}
	s.of[w].openPull = -1
	for _, j := range c.tasks.ownersOf(w) {
		if p.live[j]--; p.live[j] > 0 {
			continue
		}
		p.firstParts += int64(len(p.open[j]))
		p.open[j] = nil
		s.of[j].gone = true
		if s.of[j].clock == s.low {
			s.leaves()
		}
	}
	s.changes()
}

// skipsAhead says whether a shard may let a worker past its open iteration: it pulls ahead, and pushes for that iteration are lost.
func (c *checker) skipsAhead() bool {
	return c.tasks != nil && c.tasks.s.axes.Ahead != nil && c.tasks.isLossy
}
