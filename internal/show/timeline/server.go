package timeline

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Server follows the serving side of a rank, for its driver. A nil Server does nothing.
type Server struct {
	rank *Rank
	ways []way // by shard and worker
	on   bool  // Begin has looked at the clock
	from time.Duration

	begun, last time.Duration // of the last span
}

// way is the way of a worker's newest push of a shard.
type way struct {
	iter    int64 // of the push
	replied bool  // the worker has its answer: a later fold is not on the way to it
	next    int64 // the iteration that the newest reply lets the worker compute
}

// NewServer follows the server of a rank.
func NewServer(r *Rank) *Server {
	if r == nil {
		return nil
	}
	s := &Server{rank: r, ways: make([]way, len(r.Shards)*r.Workers)}
	for i := range s.ways {
		s.ways[i].iter = -1
	}
	return s
}

func (s *Server) way(shard, worker int32) *way {
	return &s.ways[int(shard)*s.rank.Workers+int(worker)]
}

// Stepped is told of every input of the server's node.
func (s *Server) Stepped(in *core.Input) {
	if s == nil || in.Kind != core.Arrived || in.Msg.Kind != wire.Push || in.Msg.Worker != in.Msg.Owner {
		return
	}
	if q := s.way(in.Msg.Shard, in.Msg.Owner); in.Msg.Iter > q.iter { // else a further part of the same iteration
		q.iter, q.replied = in.Msg.Iter, in.Msg.Iter < q.next // others may have closed it, and the worker was told
	}
}

// Begin is told that the driver begins to obey an effect of an iteration.
func (s *Server) Begin(iter int64) {
	if s == nil {
		return
	}
	if s.on = s.rank.Samples(max(0, iter)); s.on {
		s.from = s.rank.Now()
	}
}

// BeginReply is Begin for a reply.
func (s *Server) BeginReply(e *core.Effect) {
	if s != nil {
		s.Begin(s.way(e.Shard, e.To).iter)
	}
}

// Fold is told that a push is folded.
func (s *Server) Fold(e *core.Effect) {
	if s != nil && s.on {
		s.FoldAt(e, s.from, s.rank.Now())
	}
}

// FoldAt is Fold with its times.
func (s *Server) FoldAt(e *core.Effect, from, till time.Duration) {
	if s == nil || !s.rank.Samples(e.Msg.Iter) {
		return
	}
	q := s.way(e.Shard, e.Msg.Owner)
	s.add(span{kind: Fold, what: e.Shard, worker: e.Msg.Owner, iter: e.Msg.Iter, from: from, till: till,
		arrow: e.Msg.Worker == e.Msg.Owner && q.iter == e.Msg.Iter && !q.replied, push: q.iter})
}

// Commit is told that a version is made.
func (s *Server) Commit(e *core.Effect) {
	if s != nil && s.on {
		s.CommitAt(e, s.from, s.rank.Now())
	}
}

// CommitAt is Commit with its times.
func (s *Server) CommitAt(e *core.Effect, from, till time.Duration) {
	if s != nil && s.rank.Samples(CommitIter(e)) {
		s.add(span{kind: Commit, what: e.Shard, worker: -1, iter: e.Iter, from: from, till: till})
	}
}

// CommitIter is the iteration that selects a commit: the clock of the learning rate counts iterations under every scheme.
func CommitIter(e *core.Effect) int64 { return int64(e.Clock) }

// Reply is told that a version leaves for a worker.
func (s *Server) Reply(e *core.Effect) {
	if s != nil && s.on {
		s.ReplyAt(e, s.from, s.rank.Now())
	}
}

// ReplyAt is Reply with its times. Other effects are none.
func (s *Server) ReplyAt(e *core.Effect, from, till time.Duration) {
	if s == nil || e.Kind != core.Reply || e.Msg.Kind != wire.Reply {
		return
	}
	q := s.way(e.Shard, e.To)
	if s.rank.Samples(max(0, q.iter)) {
		s.add(span{kind: Reply, what: e.Shard, worker: e.To, iter: e.Msg.Iter, from: from, till: till, arrow: q.iter >= 0 &&
			!q.replied, push: q.iter})
	}
	q.replied, q.next = true, max(q.next, e.Msg.Iter)
}

// add adds a span behind the one before, because a server does one thing at a time.
func (s *Server) add(e span) {
	e.stream = streamServe
	if e.from != s.begun { // spans that begin together lie in each other
		e.from = max(e.from, s.last)
	}
	e.till = max(e.till, e.from+spanMin)
	e.tip = e.from + 1
	s.begun, s.last = e.from, max(s.last, e.till)
	s.rank.add(e)
}
