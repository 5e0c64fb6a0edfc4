package servernode

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// The server's side of copies that workers keep (workernode/copies.go has the worker's side).
//
// A worker that does not pull is not told when its push has landed. So its next push, and its Left, may arrive before
// the push has landed; the server handles them in turn. The headers of one worker's pushes of a shard must arrive in
// order. No other shard asks that of the transport; comm promises it.
//
// Published versions go to each worker one at a time. The server sends the next one when the worker has Taken the last,
// and then sends the current version, however many were published meanwhile: the newest wins. When the budget is nearly
// used up, the version that says so is the last one published. From then on the worker pulls, so that it starts no
// iteration that the lead shard did not let it into.

// feed is one worker's subscription to a shard.
type feed struct {
	due      bool  // a version newer than the last one sent was published
	closed   bool  // the last version said that the worker must pull: no more are published to it
	inFlight bool  // a version was sent and not Taken
	sent     int64 // versions sent so far
}

// publishes says whether versions go to workers without a pull.
func (sh *ownShard) publishes() bool { return sh.copies == scheme.Published }

// publish sends the current version to a worker, now or when the one in flight was Taken.
func (s *Server) publish(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if sh.peers[w].feed.closed {
		return out
	}
	sh.peers[w].feed.due = true
	return s.publishDue(sh, w, out)
}

// publishDue sends a version that is due, unless one is in flight to that worker. So at most one version per worker is
// in flight, as a reply or published.
func (s *Server) publishDue(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	k := &sh.peers[w]
	if !sh.publishes() || !k.feed.due || k.feed.inFlight || k.replyInFlight() {
		return out
	}
	k.feed = feed{inFlight: true, sent: k.feed.sent + 1, closed: s.mustPull(sh)}
	sh.stats.Published++
	c := k.clock
	m := wire.Header{Kind: wire.Publish, Worker: w, Shard: sh.id, Iter: c, Version: sh.versions.version, Clock: sh.minClock(c)}
	return s.ship(sh, m, m.Clock, out)
}

// versionTaken notes that the worker has room for another version.
func (s *Server) versionTaken(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if s.members.left[w] {
		return out
	}
	sh.peers[w].feed.inFlight = false
	return s.publishDue(sh, w, out)
}

// unsubscribe ends the subscription of a worker that leaves, and tells it how many versions were sent in all.
func (s *Server) unsubscribe(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if !sh.publishes() {
		return out
	}
	sh.peers[w].feed.due = false
	m := wire.Header{Kind: wire.Ended, Worker: w, Shard: sh.id, Iter: sh.peers[w].feed.sent}
	return append(out, core.Effect{Kind: core.Send, To: w, Msg: m})
}

// deferLeft defers a Left until all has landed that its worker says it has pushed. The Left of a worker that died names
// no pushes.
func (s *Server) deferLeft(m wire.Header) bool {
	for _, id := range s.owned {
		if sh := s.shards[id]; sh.copies != scheme.Pulled && sh.peers[m.Worker].reached < m.Iter {
			s.members.pendingLeft[m.Worker] = m
			return true
		}
	}
	delete(s.members.pendingLeft, m.Worker)
	return false
}

// handleDeferred handles the messages that arrived too early, when a push has landed.
func (s *Server) handleDeferred(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if !sh.queuesPushes() {
		return out
	}
	for k := &sh.peers[w]; len(k.queued) > 0 && k.landing == nil; {
		m := k.queued[0]
		k.queued = k.queued[1:]
		out = s.receivePush(sh, m, out)
	}
	if m, ok := s.members.pendingLeft[w]; ok {
		return s.arrived(core.Input{Kind: core.Arrived, Msg: m, At: s.now}, out)
	}
	return out
}

// checkCopies verifies that a due version is sent at once, that a worker which has left is sent none, and that a queued
// push waits for one in flight.
func (sh *ownShard) checkCopies() error {
	for w := range sh.peers {
		switch k := &sh.peers[w]; {
		case k.feed.due && !k.feed.inFlight && !k.replyInFlight():
			return fmt.Errorf("core: shard %d has a version due to worker %d and sends none", sh.id, w)
		case k.feed.due && k.clock == core.GoneClock:
			return fmt.Errorf("core: shard %d has a version due to worker %d, which has left", sh.id, w)
		case len(k.queued) > 0 && k.landing == nil:
			return fmt.Errorf("core: shard %d queues %d pushes of worker %d, and none is in flight", sh.id, len(k.queued), w)
		}
	}
	return nil
}
