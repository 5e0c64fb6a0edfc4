package sim

import (
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
)

// published checks a server's decision to publish a version to a worker. At most one is in flight to a worker, and each is newer
// than the last one.
func (c *checker) published(e *core.Effect) {
	s := &c.shards[e.Shard]
	k := &s.of[e.To]
	switch {
	case s.copies != scheme.Published || k.gone:
		c.fail("copies: shard %d publishes to worker %d, which does not want it", e.Shard, e.To)
	case k.publishing:
		c.fail("copies: shard %d publishes to worker %d, which has not taken the last version", e.Shard, e.To)
	case s.low <= k.sent:
		c.fail("copies: shard %d publishes v=%d to worker %d, which has v=%d", e.Shard, s.low, e.To, k.sent)
	}
	k.publishing, k.published, k.sent = true, false, s.low
	s.flying[e.Src]++
}

// replyLanded records a version that has landed. A pulled version becomes the copy of the worker at once.
func (c *checker) replyLanded(shard, w int32) {
	k := &c.shards[shard].of[w]
	if k.publishing {
		k.published = true
		return
	}
	k.copy = k.sent
}

// adopted checks a worker that makes the published version its copy: the version must have landed.
func (c *checker) adopted(shard, w int32) {
	k := &c.shards[shard].of[w]
	if !k.published {
		c.fail("copies: worker %d adopts a version of shard %d that has not landed", w, shard)
	}
	k.published, k.copy = false, k.sent
}

// taken checks the message of a worker that it has room for another version.
func (c *checker) taken(m wire.Header) {
	k := &c.shards[m.Shard].of[m.Worker]
	if !k.publishing && !k.gone {
		c.fail("copies: worker %d takes a version of shard %d that was not published", m.Worker, m.Shard)
	}
	k.publishing = false
}

// started checks the copy of a shard on which a worker starts an iteration. It returns by how many clocks the copy is behind the
// iteration, and behind v. fresh says that the worker has just rejoined: another shard may have moved it to a later iteration.
func (c *checker) started(shard, w int32, iter int64, fresh bool) (lag, age int64) {
	s := &c.shards[shard]
	lag, age = iter-s.of[w].copy, s.v()-s.of[w].copy
	if s.copies != scheme.Pulled && lag > s.bound && !fresh {
		c.fail("the gate: worker %d starts iteration %d on a copy of shard %d of clock %d, but its scheme allows a lag of %d", w, iter, shard, s.of[w].copy, s.bound)
	}
	return lag, age
}

// leaver is a worker that has told a server that it leaves at that clock.
type leaver struct {
	shards []int32
	at     int64
}

// leaves records that a worker tells a server that it leaves. It has left when all its pushes to that server have landed, because a
// worker that keeps copies does not wait for them.
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
