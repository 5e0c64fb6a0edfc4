package check

import (
	"maps"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/sim"
)

// taskCheck checks the laws of the work axis, in a run with policies that say which samples the workers compute. It hears what each
// policy is told and orders, what the workers compute, and which parts land, independently of the nodes:
//
//	a task         is computed as it was assigned, up to where the policy has cancelled it or its time is over, by one step more
//	a part         is pushed at most once by a worker; at a shard it is merged once, or dropped once
//	an iteration   has each sample at most once, and its header counts them
//	a thread       computes for one worker of its host (threads.go)
//	messages       between workers answer to what happened to their senders: nobody sends on and on
//
// That nobody waits for ever is checked for all runs.
type taskCheck struct {
	s       *sim.Simulation
	workers []tasksOf
	shards  []partsOf
	made    map[partKey]samples // what was computed, until all shards have it that get it
	kept    map[partKey]samples // what was computed to be pushed later
	isLossy bool                // a worker was lost
	cut     int64               // samples of iterations folded by the lead shard that are in none of their parts

	codes  [2]int64 // iterations of coded pushes that were decoded exactly, and not
	told   int64    // messages between workers
	events int64    // that policies were told of, beside messages
}

// tasksOf are the tasks of one worker.
type tasksOf struct {
	assigned []assigned // that are not computed
	current  int        // index of the one that is computed; -1: none
	threads  int32      // of its kernels; 0: not told
}

// assigned is a task as its policy knows it.
type assigned struct {
	task  core.Task
	begun int32 // the first sample behind the steps that have begun
	least int32 // the first sample that no step may begin: it was cancelled from there on, or its time was over; at least begun
}

// partKey names a push among all pushes.
type partKey struct {
	by, owner, part int32
	iter            int64
}

// samples are what a push contains: [from, to) of its owner's batch.
type samples struct {
	from, to int32
	flying   int  // pushes of it that have not landed
	isDone   bool // no more of them begin
}

// partsOf is what one shard has got.
type partsOf struct {
	flights    []flight           // per sender: its push in flight
	open       [][]wholeIteration // by owner: iterations of which some parts have landed, in order
	whole      [][]wholeIteration // by owner: iterations that have landed whole and are not folded, in order
	unfolded   int64              // iterations that can no longer be folded, because a later one of their owner was
	merges     int64              // parts that must have been merged into others
	merged     int64              // and were
	dropped    int64              // parts that the shard cannot use
	firstParts int64              // sets of parts that were dropped because their owner is gone
	left       []bool             // per worker: the server knows that it is gone
	live       []int32            // per owner: workers in the run that push its iterations
	code       codeCheck
}

// flight is a push in flight.
type flight struct {
	head    wire.Header
	missing int32 // pieces; 0: none is in flight
}

// wholeIteration is an iteration and the parts of it that have landed.
type wholeIteration struct {
	iter    int64
	parts   int32 // how many there are, as far as is known
	have    []int32
	ranges  []samples
	samples int64
}

func newTaskCheck(of *checker) *taskCheck {
	s, n := of.s, of.s.Workers()
	c := &taskCheck{s: s, workers: make([]tasksOf, n), shards: make([]partsOf, len(s.Plan().Shards)),
		made: map[partKey]samples{}, kept: map[partKey]samples{}}
	for w := range c.workers {
		c.workers[w].current = -1
	}
	for i := range c.shards {
		c.shards[i] = partsOf{flights: make([]flight, n), open: make([][]wholeIteration, n), whole: make([][]wholeIteration, n),
			left: make([]bool, n), live: make([]int32, n)}
		for w := range n {
			for _, j := range c.ownersOf(int32(w)) {
				c.shards[i].live[j]++
			}
		}
	}
	return c
}

func (c *taskCheck) fail(format string, args ...any) { c.s.Fail(format, args...) }

// hears notes what a policy is told.
func (c *taskCheck) hears(me int32, ev *core.WorkEvent) {
	k := &c.workers[me]
	if ev.Kind != core.Came {
		c.events++
	}
	switch ev.Kind {
	case core.Starting:
		maps.DeleteFunc(c.kept, func(key partKey, _ samples) bool { return key.by == me }) // its iteration was closed
		k.current = c.assign(me, ev.Task)
	case core.Begun:
		k.current = c.find(me, &ev.Task)
	case core.Stepped:
		at := c.find(me, &ev.Task)
		if at < 0 || at != k.current {
			c.fail("tasks: worker %d begins a step of %+v, which it was not assigned", me, ev.Task)
			return
		}
		a := &k.assigned[at]
		if int32(ev.Samples) > a.least {
			c.fail("tasks: worker %d begins samples up to %d of %+v, which ends at %d", me, ev.Samples, ev.Task, a.least)
		}
		a.begun = max(a.begun, int32(ev.Samples))
	}
}

// assign adds a task of a worker, and returns its index.
func (c *taskCheck) assign(me int32, t core.Task) int {
	k, to := &c.workers[me], t.To
	if to == 0 {
		to = int32(c.s.Batch(t.Owner))
	}
	k.assigned = append(k.assigned, assigned{task: t, begun: t.From, least: to})
	return len(k.assigned) - 1
}

// find returns the index of a task of a worker; -1: it has none such.
func (c *taskCheck) find(me int32, t *core.Task) int {
	return slices.IndexFunc(c.workers[me].assigned, func(a assigned) bool {
		return a.task.Owner == t.Owner && a.task.Iter == t.Iter && a.task.Part == t.Part
	})
}

// ordered notes an order of a policy.
func (c *taskCheck) ordered(me int32, during core.WorkEventKind, o *core.Order) {
	k := &c.workers[me]
	switch o.Kind {
	case core.Assign:
		c.usesThreads(me, during, &o.Task)
		if during == core.Starting && o.Task.Owner == me && k.current >= 0 && k.assigned[k.current].task.Iter == o.Task.Iter {
			k.assigned = slices.Delete(k.assigned, k.current, k.current+1)
			k.current = c.assign(me, o.Task)
			return
		}
		if c.find(me, &o.Task) >= 0 {
			c.fail("exactly once: worker %d is assigned %+v twice", me, o.Task)
		}
		c.assign(me, o.Task)
	case core.CancelWork:
		c.cancelled(me, o.Task)
	case core.Tell:
		// Each event lets a policy send a few messages to every other worker, and each message be answered a few times.
		const tellMax = 8
		if c.told++; c.told > tellMax*c.events*int64(len(c.workers)) {
			c.fail("tasks: %d messages between %d workers after %d events: they answer each other for ever", c.told, len(c.workers), c.events)
		}
	}
}

// cancelled notes that a policy cancels the end of a task. A task of which nothing is left, and nothing has begun, is forgotten.
func (c *taskCheck) cancelled(me int32, t core.Task) {
	k := &c.workers[me]
	at := c.find(me, &t)
	if at < 0 {
		return // it is computed
	}
	a := &k.assigned[at]
	a.least = min(a.least, max(t.To, a.begun))
	if at != k.current && t.To <= a.task.From {
		k.assigned = slices.Delete(k.assigned, at, at+1)
		if at < k.current {
			k.current--
		}
	}
}

// endsInTime notes that the time of the task that a worker computes is over.
func (c *taskCheck) endsInTime(me int32) {
	if k := &c.workers[me]; k.current >= 0 {
		a := &k.assigned[k.current]
		a.least = a.begun
	}
}

// computed checks what a worker has computed of its task, and notes it as the content of the push.
func (c *taskCheck) computed(me int32, n int64) {
	k := &c.workers[me]
	if k.current < 0 {
		c.fail("tasks: worker %d has computed a task that it was not assigned", me)
		return
	}
	a := k.assigned[k.current]
	k.assigned = slices.Delete(k.assigned, k.current, k.current+1)
	k.current = -1
	key := partKey{me, a.task.Owner, a.task.Part, a.task.Iter}
	if a.task.Keep == core.Again {
		if k, ok := c.kept[key]; !ok || n != int64(k.to-k.from) {
			c.fail("exactly once: worker %d pushes %d samples of %+v, and has kept %v", me, n, a.task, k)
		}
		delete(c.kept, key)
	} else if n != int64(a.least-a.task.From) || a.begun < a.least {
		c.fail("tasks: worker %d has computed %d samples of %+v and begun them up to %d, but it ends at %d", me, n, a.task, a.begun, a.least)
	}
	if _, twice := c.made[key]; twice {
		c.fail("exactly once: worker %d computes %+v for the second time", me, a.task)
	}
	made := samples{from: a.task.From, to: a.task.From + int32(n)}
	if a.task.Keep == core.Kept {
		c.kept[key] = made
		return
	}
	c.made[key] = made
}

// lost forgets the tasks of a worker that was lost.
func (c *taskCheck) lost(me int32) {
	c.workers[me] = tasksOf{current: -1, threads: c.workers[me].threads}
	c.isLossy = true
}

// partOffered checks the header of a push that has reached its server.
func (c *checker) partOffered(m wire.Header) {
	f := &c.tasks.shards[m.Shard].flights[m.Worker]
	made, ok := c.tasks.made[partKey{m.Worker, m.Owner, m.Part, m.Iter}]
	if f.missing > 0 || !ok || m.Samples != int64(made.to-made.from) {
		c.fail("exactly once: worker %d pushes part %d of worker %d's iteration %d to shard %d with %d samples; it has "+
			"computed %v, and %d pieces of its last push are missing", m.Worker, m.Part, m.Owner, m.Iter, m.Shard, m.Samples, made, f.missing)
	}
	*f = flight{m, c.shards[m.Shard].pieces}
}

// partLanded records a piece of a push that has landed. The last piece adds the part to its iteration, and the last part advances the
// clock of its owner.
func (c *checker) partLanded(shard, w int32) {
	p, s := &c.tasks.shards[shard], &c.shards[shard]
	f := &p.flights[w]
	if f.missing--; f.missing > 0 {
		return
	}
	if f.missing < 0 {
		c.fail("exactly once: a piece of worker %d for shard %d belongs to no push", w, shard)
		return
	}
	if p.merged != p.merges {
		c.fail("exactly once: shard %d has merged %d parts, want %d", shard, p.merged, p.merges)
	}
	m := f.head
	content := c.tasks.delivered(partKey{w, m.Owner, m.Part, m.Iter})
	at := slices.IndexFunc(p.open[m.Owner], func(a wholeIteration) bool { return a.iter == m.Iter })
	switch {
	case c.tasks.isApart():
		c.apartLanded(p, s, &m, content)
		return
	case s.of[m.Owner].gone || m.Iter < s.of[m.Owner].reached || at >= 0 && slices.Contains(p.open[m.Owner][at].have, m.Part):
		p.dropped++
		return
	case at < 0:
		at = 0
		for at < len(p.open[m.Owner]) && p.open[m.Owner][at].iter < m.Iter {
			at++
		}
		p.open[m.Owner] = slices.Insert(p.open[m.Owner], at, wholeIteration{iter: m.Iter})
	default:
		p.merges++
	}
	a := &p.open[m.Owner][at]
	a.parts, a.have, a.ranges, a.samples = max(a.parts, m.Parts), append(a.have, m.Part), append(a.ranges, content), a.samples+m.Samples
	for len(p.open[m.Owner]) > 0 && len(p.open[m.Owner][0].have) == int(p.open[m.Owner][0].parts) {
		whole := p.open[m.Owner][0]
		p.open[m.Owner] = p.open[m.Owner][1:]
		p.whole[m.Owner] = append(p.whole[m.Owner], whole)
		c.pushLanded(s, m.Owner, whole.iter+1)
	}
}

// merged records that a server has merged a part into others.
func (c *checker) merged(e *core.Effect) {
	p := &c.tasks.shards[e.Shard]
	if p.merged++; p.merged != p.merges {
		c.fail("exactly once: shard %d merges a part of worker %d, iteration %d, but %d were merged and %d had to be",
			e.Shard, e.To, e.Iter, p.merged, p.merges)
	}
}

// partsFolded checks the samples of an iteration that enters the pending sums.
func (c *checker) partsFolded(e *core.Effect) {
	p := &c.tasks.shards[e.Shard]
	var a wholeIteration
	list := p.whole[e.Msg.Worker]
	at := slices.IndexFunc(list, func(a wholeIteration) bool {
		return a.iter == e.Msg.Iter && (!c.tasks.isApart() || a.have[0] == e.Msg.Part)
	})
	ok := at >= 0
	if ok {
		a = list[at]
		p.whole[e.Msg.Worker] = slices.Delete(list, 0, at+1)
		p.unfolded += int64(at) // a scheme folds the iterations of a worker in order
	}
	slices.SortFunc(a.ranges, func(x, y samples) int { return int(x.from - y.from) })
	end := int32(0)
	for _, r := range a.ranges {
		if r.from < end && r.to > r.from {
			ok = false
		}
		end = max(end, r.to)
	}
	if !ok || a.samples != e.Msg.Samples {
		c.fail("exactly once: shard %d folds iteration %d of worker %d with %d samples; its parts %v have %d, in %v",
			e.Shard, e.Msg.Iter, e.Msg.Worker, e.Msg.Samples, a.have, a.samples, a.ranges)
	}
	c.codeFolded(e)
	if e.Shard == 0 {
		c.tasks.cut += c.tasks.whole(&e.Msg) - a.samples
	}
}

// partsDropped is the number of parts that a shard has dropped, before they were an iteration.
func (c *checker) partsDropped(shard int) int64 {
	if c.tasks == nil {
		return 0
	}
	return c.tasks.shards[shard].dropped + c.tasks.shards[shard].firstParts
}

// tasksEnd checks, at the end of a run, that all parts were merged or dropped.
func (c *checker) tasksEnd() {
	if c.tasks == nil {
		return
	}
	for i := range c.tasks.shards {
		p := &c.tasks.shards[i]
		if p.merged != p.merges {
			c.fail("exactly once: shard %d has merged %d parts, want %d", i, p.merged, p.merges)
		}
		for w, open := range p.open {
			if len(open) > 0 && !c.s.IsDead(int32(w)) {
				c.fail("exactly once: shard %d has %d parts of iteration %d of worker %d, of %d", i, len(open[0].have), open[0].iter, w, open[0].parts)
			}
		}
		unfolded := p.unfolded
		for _, list := range p.whole {
			unfolded += int64(len(list))
		}
		if n := c.s.Shard(int32(i)).Stats.Dropped - p.dropped - p.firstParts; n != unfolded {
			c.fail("exactly once: shard %d dropped %d iterations, and did not fold %d", i, n, unfolded)
		}
	}
}
