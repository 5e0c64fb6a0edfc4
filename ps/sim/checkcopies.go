package sim

import (
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
)

// published: a server decides to send a version that nobody asked for. One is on its way to a worker at a time, and
// none is older than the one before.
func (c *checker) published(e *core.Effect) {
	s := &c.shards[e.Shard]
	k := &s.of[e.To]
	switch {
	case s.copies != scheme.Published || k.gone:
		c.fail("copies: shard %d publishes to worker %d, which does not want it", e.Shard, e.To)
	case k.fed:
		c.fail("copies: shard %d publishes to worker %d, which has not taken the last version", e.Shard, e.To)
	case s.low <= k.sent:
		c.fail("copies: shard %d publishes v=%d to worker %d, which has v=%d", e.Shard, s.low, e.To, k.sent)
	}
	k.fed, k.beside, k.sent = true, false, s.low
	s.flying[e.Src]++
}

// replyLanded: a version, asked for or published, is with its worker. What it asked for is its copy from now on.
func (c *checker) replyLanded(shard, w int32) {
	k := &c.shards[shard].of[w]
	if k.fed {
		k.beside = true
		return
	}
	k.copy = k.sent
}

// adopted: a worker makes the published version its copy.
func (c *checker) adopted(shard, w int32) {
	k := &c.shards[shard].of[w]
	if !k.beside {
		c.fail("copies: worker %d adopts a version of shard %d that has not landed", w, shard)
	}
	k.beside, k.copy = false, k.sent
}

// taken: there is room for another version.
func (c *checker) taken(m wire.Header) {
	k := &c.shards[m.Shard].of[m.Worker]
	if !k.fed && !k.gone {
		c.fail("copies: worker %d takes a version of shard %d that was not published", m.Worker, m.Shard)
	}
	k.fed = false
}

// started: a worker starts an iteration, on its copy. It gives how many clocks that is behind the iteration, and behind v. One
// that came back may have been sent on by another shard.
func (c *checker) started(shard, w int32, iter int64, fresh bool) (lag, age int64) {
	s := &c.shards[shard]
	lag, age = iter-s.of[w].copy, s.v()-s.of[w].copy
	if s.copies != scheme.Pulled && lag > s.bound && !fresh {
		c.fail("the gate: worker %d starts iteration %d on a copy of shard %d of clock %d, and its scheme allows %d", w, iter, shard, s.of[w].copy, s.bound)
	}
	return lag, age
}

// leaver is a worker that said to a server that it leaves at that clock.
type leaver struct {
	shards []int32
	at     int64
}

// leaves: a worker says that it leaves. It does when all that it has pushed to that server has landed: who keeps copies
// does not wait for that.
func (c *checker) leaves(server int32, shards []int32, m wire.Header) {
	c.leaving[[2]int32{server, m.Worker}] = leaver{shards: shards, at: m.Iter}
	c.leavesAtLast(server, m.Worker)
}

func (c *checker) leavesAtLast(server, w int32) {
	if len(c.leaving) == 0 {
		return
	}
	l, leaves := c.leaving[[2]int32{server, w}]
	if !leaves {
		return
	}
	for _, id := range l.shards {
		if s := &c.shards[id]; s.copies != scheme.Pulled && s.of[w].clock < l.at {
			return
		}
	}
	delete(c.leaving, [2]int32{server, w})
	c.left(l.shards, w)
}
