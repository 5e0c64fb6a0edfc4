package check

import (
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// published checks a server's decision to publish a version to a worker. At most one is in flight to a worker, and each is newer
// than the last one.
func (c *checker) published(e *core.Effect) {
	s := &c.shards[e.Shard]
	k := &s.of[e.To]
	switch {
	case s.now.copies != scheme.Published || k.gone:
		c.fail("copies: shard %d publishes to worker %d, which does not want it", e.Shard, e.To)
	case k.publishing:
		c.fail("copies: shard %d publishes to worker %d, which has not taken the last version", e.Shard, e.To)
	case s.low <= k.sent:
		c.fail("copies: shard %d publishes v=%d to worker %d, which has v=%d", e.Shard, s.low, e.To, k.sent)
	}
	k.publishing, k.published, k.sent = true, false, s.low
	s.flying[e.Src]++
}

// ReplyLanded records a version that has landed, with the last of its pieces. A pulled version becomes the copy of the worker at once.
func (c *checker) ReplyLanded(shard, w int32, isPiece bool) {
	if isPiece && !c.pieceLanded(shard, w) {
		return
	}
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

// WorkerStarts checks the copy of a shard on which a worker starts an iteration: by how many clocks it is behind the iteration. Another
// shard may have moved a worker that has just rejoined to a later iteration.
func (c *checker) WorkerStarts(w, shard int32, iter int64, isFresh bool) {
	s := &c.shards[shard]
	lag := iter - s.of[w].copy
	s.lag.Add(lag)
	s.age.Add(s.v() - s.of[w].copy)
	if s.now.copies != scheme.Pulled && lag > s.now.bound && !isFresh {
		c.fail("the gate: worker %d starts iteration %d on a copy of shard %d of clock %d, but its scheme allows a lag "+
			"of %d", w, iter, shard, s.of[w].copy, s.now.bound)
	}
}

// leaver is a worker that has told a server that it leaves at that clock.
type leaver struct {
	shards []int32
	at     int64
}

// leaves records that a worker tells a server that it leaves. It has left when all its pushes to that server have landed, because a
// worker that keeps copies does not wait for them.
func (c *checker) leaves(server int32, m wire.Header) {
	c.leaving[[2]int32{server, m.Worker}] = leaver{shards: c.s.Server(server).Shards(), at: m.Iter}
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
		if s := &c.shards[id]; s.now.copies != scheme.Pulled && s.of[w].clock < l.at {
			return
		}
	}
	delete(c.leaving, [2]int32{server, w})
	c.left(l.shards, w)
}

// joined records that a server learns that a worker has rejoined. The server treats that as a pull of all its shards.
func (c *checker) joined(server, w int32, iter int64) {
	for _, id := range c.s.Server(server).Shards() {
		clock := c.s.Clock(id, iter)
		s := &c.shards[id]
		k := &s.of[w]
		k.reached = max(k.reached, clock)
		v := s.v()
		if s.low == math.MaxInt64 && !s.now.agrees { // there was no worker: v is the end of all pushes
			v = s.closed
			for i := range s.of {
				v = max(v, min(s.of[i].reached, s.now.until))
			}
		}
		k.publishing, k.published = false, false
		s.forgotten(w)
		k.gone, k.clock, k.openPull = false, max(v, k.reached), k.reached
		s.lowest()
		s.changes()
	}
}

// committed checks a version that is written: no reply may still read its buffer.
func (c *checker) committed(e *core.Effect) {
	s := &c.shards[e.Shard]
	if e.Dst == s.cur || e.Src != s.cur || s.flying[e.Dst] > 0 {
		c.fail("immutable versions: shard %d writes version %d from buffer %d into %d, which %d replies read; %d is current", e.Shard, e.Iter,
			e.Src, e.Dst, s.flying[e.Dst], s.cur)
	}
	c.codeCommitted(e)
	s.cur = e.Dst
	s.versions++
	if s.now.whole && !s.now.agrees {
		s.closed = s.last + 1
		s.changes()
	}
}
