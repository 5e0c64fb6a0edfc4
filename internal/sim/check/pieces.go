package check

import "fluentps/internal/core"

// apart is a reply of one shard to one worker whose pieces leave one by one.
type apart struct {
	buf     int32
	pieces  int32 // pieces that will leave
	started int32 // pieces that the send policy has released
	sent    int32
	landed  int32 // pieces of this reply and of earlier ones, in this life of the worker
}

// takenApart records a reply, pulled or published, whose pieces wait for the send policy of the server.
func (c *checker) takenApart(e *core.Effect) {
	s := &c.shards[e.Shard]
	if s.apart == nil {
		s.apart = make([]apart, len(s.of))
	}
	a := &s.apart[e.To]
	if a.sent < a.pieces {
		c.fail("one reply at a time: shard %d replies to worker %d while %d pieces of the last reply have not left",
			e.Shard, e.To, a.pieces-a.sent)
	}
	*a = apart{buf: e.Src, pieces: s.pieces, landed: a.landed}
}

// pieceStarted checks a piece that the send policy releases: it must be of the version that the server decided to reply with.
func (c *checker) pieceStarted(e *core.Effect) {
	a := &c.shards[e.Shard].apart[e.To]
	if a.started++; a.started > a.pieces || a.buf != e.Src {
		c.fail("exactly once: shard %d sends %d pieces of a reply of %d to worker %d, from buffer %d, but its version is "+
			"in %d", e.Shard, a.started, a.pieces, e.To, e.Src, a.buf)
	}
}

// ReplyPieceLeft records a piece that has left. After the last one the reply no longer reads its version.
func (c *checker) ReplyPieceLeft(shard, worker int32) {
	a := &c.shards[shard].apart[worker]
	if a.sent++; a.sent == a.pieces {
		c.ReplyLeft(shard, a.buf)
	}
}

// pieceLanded says whether a piece is the last one of its reply. The replies of a shard to one worker never mix.
func (c *checker) pieceLanded(shard, w int32) bool {
	s := &c.shards[shard]
	a := &s.apart[w]
	a.landed++
	return a.landed%s.pieces == 0
}

// forgotten drops the pieces of a reply to an earlier life of the worker that have not left.
func (s *shardCheck) forgotten(w int32) {
	if s.apart == nil {
		return
	}
	a := &s.apart[w]
	if a.started < a.pieces && a.sent == a.started {
		s.flying[a.buf]--
	}
	a.pieces, a.landed = a.started, 0
}
