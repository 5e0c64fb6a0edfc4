package servernode

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// The server's half of grants (grants.go of workernode says what both halves do). One instance of a scheme that schedules
// the link decides for all its shards on a server, its rotation.

// turn is the worker whose turn it is in a rotation, and whether others wait for it.
func (sh *ownShard) turn() (w int32, awaited bool) {
	if t, ok := sh.scheme.(interface{ Turn() (int32, bool) }); ok {
		return t.Turn()
	}
	return 0, false
}

// obeyLink obeys a decision about the link, or one that is a message to the worker or an alarm for the driver.
func (s *Server) obeyLink(d scheme.Decision, out []core.Effect) []core.Effect {
	m := wire.Header{Kind: wire.Grant, Worker: d.Worker, Shard: d.Shard, Iter: d.Iter, Epoch: int32(d.Epoch)}
	switch d.Kind {
	case scheme.WakeAt:
		return s.askAlarm(d, out)
	case scheme.AskElsewhere:
		return s.askElsewhere(d, out)
	case scheme.Revoke:
		m.Kind = wire.Revoke
	case scheme.Grant:
		s.endGrantWait(s.shards[d.Shard], d.Worker)
	default:
		panic(fmt.Sprintf("core: server %d shard %d: unknown decision %v", s.me, d.Shard, d.Kind))
	}
	if d.Epoch > math.MaxInt32 {
		panic(fmt.Sprintf("core: server %d revoked %d grants, more than a message can number", s.me, d.Epoch))
	}
	return append(out, core.Effect{Kind: core.Send, To: d.Worker, Msg: m})
}

// tellReady tells the scheme of a rotation that a worker's push is ready.
func (s *Server) tellReady(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	sh := s.shards[m.Shard]
	s.must(sh != nil && sh.schedulesLink, in)
	k := &sh.peers[m.Worker]
	if k.readySince < 0 && !s.members.left[m.Worker] {
		k.readySince = s.now
	}
	out = s.decide(sh, scheme.Event{Kind: scheme.Ready, Worker: m.Worker, Shard: m.Shard, Iter: m.Iter, Blocked: time.Duration(m.Blocked),
		Queued: time.Duration(m.Clock)}, out)
	if k.readySince >= 0 {
		sh.stats.Turns.Delayed++
	}
	return out
}

// endGrantWait ends the wait of a push for its grant.
func (s *Server) endGrantWait(sh *ownShard, w int32) {
	if k := &sh.peers[w]; k.readySince >= 0 {
		sh.stats.Turns.DelayedFor += s.now - k.readySince
		k.readySince = -1
	}
}

// turnCounts are the counts of this server's rotation. The first of its shards, which names the rotation on the wire,
// has the counts of the waits, and the scheme has the others.
func (s *Server) turnCounts() Turns {
	first := s.shards[s.owned[slices.IndexFunc(s.owned, func(id int32) bool { return s.shards[id].schedulesLink })]]
	t := first.stats.Turns
	if c, ok := first.scheme.(interface{ Passed() (missed, strays int64) }); ok {
		missed, strays := c.Passed()
		t.Missed, t.Strays = t.Missed+missed, t.Strays+strays
	}
	return t
}

// tellSent tells a scheme that schedules the link that a reply has been sent.
func (s *Server) tellSent(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if !sh.schedulesLink || s.members.left[w] {
		return out
	}
	return s.decide(sh, scheme.Event{Kind: scheme.Sent, Worker: w, Shard: sh.id, Iter: sh.peers[w].clock}, out)
}
