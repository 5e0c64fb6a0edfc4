package sim

import "fluentps/ps/core"

// apart is a reply whose pieces leave one by one, to one worker, of one shard.
type apart struct {
	buf    int32
	pieces int32 // that will leave
	let    int32 // that were let go
	sent   int32
	landed int32 // of this reply and those before, in this life of the worker
}

// takenApart: the pieces of a reply, asked for or published, wait for the server's send policy.
func (c *checker) takenApart(e *core.Effect) {
	s := &c.shards[e.Shard]
	if s.apart == nil {
		s.apart = make([]apart, len(s.of))
	}
	a := &s.apart[e.To]
	if a.sent < a.pieces {
		c.fail("one reply at a time: shard %d replies to worker %d while %d pieces of the last reply have not left", e.Shard, e.To, a.pieces-a.sent)
	}
	*a = apart{buf: e.Src, pieces: s.pieces, landed: a.landed}
}

// letGo: a piece leaves, of the version that its reply was decided on.
func (c *checker) letGo(e *core.Effect) {
	a := &c.shards[e.Shard].apart[e.To]
	if a.let++; a.let > a.pieces || a.buf != e.Src {
		c.fail("exactly once: shard %d lets go %d pieces of a reply of %d to worker %d, from buffer %d, and its version is in %d", e.Shard, a.let, a.pieces, e.To, e.Src, a.buf)
	}
}

// pieceSent: when the last piece has left, the version is no longer read.
func (c *checker) pieceSent(t *transfer) {
	a := &c.shards[t.shard].apart[t.worker]
	if a.sent++; a.sent == a.pieces {
		c.replySent(t.shard, a.buf)
	}
}

// pieceLanded says whether it is the last of a reply: replies to one worker do not mix.
func (c *checker) pieceLanded(shard, w int32) bool {
	s := &c.shards[shard]
	a := &s.apart[w]
	a.landed++
	return a.landed%s.pieces == 0
}

// forgotten: what waited for an earlier life of the worker will not leave.
func (s *shardCheck) forgotten(w int32) {
	if s.apart == nil {
		return
	}
	a := &s.apart[w]
	if a.let < a.pieces && a.sent == a.let {
		s.flying[a.buf]--
	}
	a.pieces, a.landed = a.let, 0
}
