package check

import (
	"math"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work/code"
)

// The laws of the work axis where workers pull ahead (internal/core/ahead.go): several workers push for one owner, and a worker pushes an
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

// delivered returns the content of a push that has landed at one more shard.
func (c *taskCheck) delivered(key partKey) samples {
	m := c.made[key]
	m.flying--
	c.note(key, m)
	return m
}

// ownersOf are the workers whose iterations a worker pushes, without being asked.
func (c *taskCheck) ownersOf(w int32) []int32 {
	if a := c.s.Axes().Ahead; a != nil && a.Owners != nil {
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
		c.fail("exactly once: worker %d pushes part %d of worker %d's iteration %d, which it has not just computed",
			m.Worker, m.Part, m.Owner, m.Iter)
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
	return c.tasks != nil && c.s.Axes().Ahead != nil && c.tasks.isLossy
}

// isApart says whether an iteration of a worker is two pushes: its private part, and its sum of the coded rest of some batches.
func (c *taskCheck) isApart() bool { return c.s.Axes().Ahead != nil && c.s.Axes().Ahead.Apart }

// isFirst and isSecond say which of both a fold is of; neither, if there are not two.
func (c *checker) isFirst(e *core.Effect) bool {
	return c.tasks != nil && c.tasks.isApart() && e.Msg.Part == 0 && e.Msg.Iter == c.shards[e.Shard].of[e.Msg.Worker].clock
}

func (c *checker) isSecond(e *core.Effect) bool {
	return c.tasks != nil && c.tasks.isApart() && e.Msg.Part == 1 && e.Msg.Iter == c.shards[e.Shard].of[e.Msg.Worker].folded
}

// whole is the number of samples of a push of which nothing was left out.
func (c *taskCheck) whole(m *wire.Header) int64 {
	batch := c.s.Batch(m.Worker)
	if !c.isApart() {
		return batch
	}
	alone := int64(code.Private(int(batch), c.s.Config().Work.Code.Stragglers, c.s.Config().Work.Code.Alpha))
	if m.Part == 0 {
		return alone
	}
	return batch - alone
}

// apartLanded records that a private part has landed, or a sum, which advances the clock of its worker.
func (c *checker) apartLanded(p *partsOf, s *shardCheck, m *wire.Header, content samples) {
	p.whole[m.Owner] = append(p.whole[m.Owner],
		wholeIteration{iter: m.Iter, have: []int32{m.Part}, ranges: []samples{content}, samples: m.Samples})
	c.pushLanded(s, m.Owner, m.Iter+int64(m.Part))
}

// codeCheck is what a shard has folded of the iteration that it closes, where pushes are coded.
type codeCheck struct {
	parts   []float64 // by partition: how often it counts
	workers []int32   // whose sums are folded
	private []int32   // whose private parts are
	largest float64   // of the weights
	closed  int64     // 1 + the last iteration that was committed
	samples int64     // that the pushes report
}

// codeFolded notes a push that is folded with a weight.
func (c *checker) codeFolded(e *core.Effect) {
	if c.tasks == nil || c.s.Code() == nil {
		return
	}
	k := &c.tasks.shards[e.Shard].code
	if k.parts == nil {
		k.parts = make([]float64, len(c.tasks.workers))
	}
	if k.samples += e.Msg.Samples; c.tasks.isApart() && e.Msg.Part == 0 {
		if k.private = append(k.private, e.Msg.Worker); e.Weight != 1 || e.Msg.Samples > c.tasks.whole(&e.Msg) {
			c.fail("the code: shard %d folds the private part of worker %d with weight %g and %d samples; its batch has %d "+
				"of these", e.Shard, e.Msg.Worker, e.Weight, e.Msg.Samples, c.tasks.whole(&e.Msg))
		}
		return
	}
	of, factors := c.s.Code().Row(int(e.Msg.Worker))
	for i, j := range of {
		x := e.Weight * factors[i]
		k.parts[j] += x
		k.largest = max(k.largest, math.Abs(x))
	}
	k.workers = append(k.workers, e.Msg.Worker)
}

// codeCommitted checks an iteration of coded pushes: it is committed once, and each partition counts once in it, as
// often as it is on several workers. It may count less only after a deadline, or if workers have left or were lost.
func (c *checker) codeCommitted(e *core.Effect) {
	if c.tasks == nil || c.s.Code() == nil {
		return
	}
	s, k := &c.shards[e.Shard], &c.tasks.shards[e.Shard].code
	if s.last < k.closed {
		c.fail("exactly once: shard %d commits iteration %d after %d iterations", e.Shard, s.last, k.closed)
	}
	isExact := c.s.Code().Decodes(k.workers)
	c.privateCommitted(e.Shard, isExact)
	for j, n := range k.parts {
		if isExact && math.Abs(n-1) > 1e-9*max(1, k.largest) {
			c.fail("exactly once: shard %d commits iteration %d with the pushes of workers %v, in which partition %d counts "+
				"%v times", e.Shard, s.last, k.workers, j, n)
		}
	}
	if isGone := func(k pairCheck) bool { return k.gone }; !isExact && c.s.Config().Work.Code.Deadline == 0 &&
		!slices.ContainsFunc(s.of, isGone) {
		c.fail("the code: shard %d commits iteration %d with the pushes of workers %v only, there is no deadline, and "+
			"nobody has left", e.Shard, s.last, k.workers)
	}
	if isExact && (!c.tasks.isApart() || len(k.private) == len(s.of)) {
		c.tasks.codes[0]++
	} else {
		c.tasks.codes[1]++
	}
	for w := range c.s.Workers() { // a version counts the samples of all partitions
		s.samples += c.s.Batch(int32(w))
	}
	s.samples -= k.samples
	clear(k.parts)
	*k = codeCheck{parts: k.parts, workers: k.workers[:0], private: k.private[:0], closed: s.last + 1}
}

// codesCounted checks that the servers count the versions that were decoded approximately.
func (c *checker) codesCounted() {
	counted := int64(0)
	for i := range c.shards {
		counted += c.s.Shard(int32(i)).Stats.Approximate
	}
	if c.tasks != nil && c.s.Code() != nil && counted != c.tasks.codes[1] {
		c.fail("the code: %d versions were decoded approximately, and the servers count %d", c.tasks.codes[1], counted)
	}
}

// privateCommitted checks the private parts of an iteration that is committed: each counts once, and without a
// deadline none is missing of a worker in the run that may still push it.
func (c *checker) privateCommitted(shard int32, decodes bool) {
	s, k := &c.shards[shard], &c.tasks.shards[shard].code
	if !c.tasks.isApart() {
		return
	}
	slices.Sort(k.private)
	if len(slices.Compact(slices.Clone(k.private))) < len(k.private) {
		c.fail("exactly once: shard %d commits iteration %d with the private parts of workers %v", shard, s.last, k.private)
	}
	for w := range s.of {
		missing := !slices.Contains(k.private, int32(w))
		if of := &s.of[w]; missing && !of.gone && c.s.Config().Work.Code.Deadline == 0 && (of.clock <= s.last || !c.tasks.isLossy) {
			c.fail("the code: shard %d commits iteration %d (decoded: %t) without the private part of worker %d, whose "+
				"clock is %d", shard, s.last, decodes, w, of.clock)
		}
	}
}
