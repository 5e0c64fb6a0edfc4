package core

import (
	"fmt"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// The server's side of copies that workers keep (copies.go has the worker's).
//
// A worker that does not pull is not told when its push has landed. So its next push, and its Left, may come before
// that: the server takes them in turn. Headers of one worker's pushes of a shard come in order; that is the one thing
// that is asked of the transport beyond what other shards need, and comm promises it.
//
// What a scheme publishes goes to each worker one version at a time: the next only when the worker has Taken the last,
// and then the current one, whatever was published meanwhile: the newest wins. When the budget is nearly used up, the version
// that says so is the last: from then on the worker pulls, so that none starts an iteration that the lead shard did not let it
// into.

// feed is what is published of a shard to one worker.
type feed struct {
	due  bool  // something newer than what was sent last was published
	last bool  // what was sent last says that the worker must ask: nothing more is published to it
	out  bool  // a version was sent and not Taken
	sent int64 // versions so far
}

// keepCopies prepares the shard for workers that keep copies of it.
func (sh *ownShard) keepCopies(workers int) {
	if sh.copies == scheme.Pulled {
		return
	}
	sh.early = make([][]wire.Header, workers)
	if sh.copies != scheme.Published {
		return
	}
	sh.feeds = make([]feed, workers)
}

// publish sends the current version to a worker, now or when the one on its way was taken.
func (s *Server) publish(sh *ownShard, w int32, out []Effect) []Effect {
	if sh.feeds[w].last {
		return out
	}
	sh.feeds[w].due = true
	return s.publishDue(sh, w, out)
}

// publishDue sends what is due, unless something is on its way to that worker: thus at most one version per worker is
// in flight, reply or published.
func (s *Server) publishDue(sh *ownShard, w int32, out []Effect) []Effect {
	if sh.feeds == nil || !sh.feeds[w].due || sh.feeds[w].out || sh.sending[w] >= 0 {
		return out
	}
	sh.feeds[w] = feed{out: true, sent: sh.feeds[w].sent + 1, last: s.asks(sh)}
	sh.stats.Published++
	c := sh.clock[w]
	m := wire.Header{Kind: wire.Publish, Worker: w, Shard: sh.id, Iter: c, Version: sh.version, Clock: sh.minClock(c)}
	return s.ship(sh, m, m.Clock, out)
}

// taken: the worker has room for another version.
func (s *Server) taken(sh *ownShard, w int32, out []Effect) []Effect {
	if s.left[w] {
		return out
	}
	sh.feeds[w].out = false
	return s.publishDue(sh, w, out)
}

// unsubscribe ends what a worker that leaves has to do with copies, and tells it how many versions come in all.
func (s *Server) unsubscribe(sh *ownShard, w int32, out []Effect) []Effect {
	if sh.early == nil {
		return out
	}
	sh.early[w] = nil
	if sh.feeds == nil {
		return out
	}
	sh.feeds[w].due = false
	m := wire.Header{Kind: wire.Ended, Worker: w, Shard: sh.id, Iter: sh.feeds[w].sent}
	return append(out, Effect{Kind: Send, To: w, Msg: m})
}

// notYet keeps a Left back until all has landed that its worker says it has pushed. That of a worker that died says
// nothing.
func (s *Server) notYet(m wire.Header) bool {
	for _, id := range s.order {
		if sh := s.shards[id]; sh.copies != scheme.Pulled && sh.reached[m.Worker] < m.Iter {
			s.leaving[m.Worker] = m
			return true
		}
	}
	delete(s.leaving, m.Worker)
	return false
}

// caughtUp goes on with what came too early, when a push has landed.
func (s *Server) caughtUp(sh *ownShard, w int32, out []Effect) []Effect {
	if sh.early == nil {
		return out
	}
	for len(sh.early[w]) > 0 && sh.landing[w] == nil {
		m := sh.early[w][0]
		sh.early[w] = sh.early[w][1:]
		out = s.offered(sh, m, out)
	}
	if m, ok := s.leaving[w]; ok {
		return s.arrived(Input{Kind: Arrived, Msg: m, At: s.now}, out)
	}
	return out
}

// checkCopies: one version in flight per worker, and none to who has left but what was on its way.
func (sh *ownShard) checkCopies() error {
	for w, f := range sh.feeds {
		switch {
		case f.due && !f.out && sh.sending[w] < 0:
			return fmt.Errorf("core: shard %d owes worker %d a version and sends none", sh.id, w)
		case f.due && sh.clock[w] == gone:
			return fmt.Errorf("core: shard %d owes worker %d, which has left, a version", sh.id, w)
		}
	}
	for w, q := range sh.early {
		if len(q) > 0 && sh.landing[w] == nil {
			return fmt.Errorf("core: shard %d keeps %d pushes of worker %d waiting for none", sh.id, len(q), w)
		}
	}
	return nil
}
