package core

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// Some schemes schedule a server's link: one instance decides for all shards of the scheme there, its rotation. A
// worker holds the pieces of these shards back from its send policy until that server grants them:
//
//	Worker                                              Server
//	PieceReady ─► kept; the last one: Send PushReady ──► Arrived: Ready ─► scheme
//	Arrived Grant: all pieces to the send policy ◄────── Send Grant ◄───── now, or at an Alarm that it asked for
//
// A grant controls its own server's shards and nothing else, and does not depend on another shard's reply. If a grant
// arrives too late to be used, its Revoke makes it void, whichever of the two arrives first; the worker then announces
// the push again. A Revoke that arrives after the push was released changes nothing: the server takes the push out of
// turn.
//
// Two servers may grant at once. Then the worker pushes to one after the other, in the order of grants, so that each push
// has the whole link, and tells the server how long its push waited (PushReady). The next worker pushes to the second
// server later by just that. From then on each server takes turns with workers that push to no other, without a message
// between servers.
//
// No rotation can wait for itself so. The push that others wait for is with the send policy and the transport, and leaves
// as its own server takes it: the server expects the push, since it has granted it, and takes it without a word from another
// server. A revoked grant leaves the queue. So a server that takes nothing holds up the other servers' turns of workers
// that have begun to push to it, until skip_after passes these turns, and no others; and these workers could not go on anyway.

// grantGate holds one worker's pieces for one server.
type grantGate struct {
	first   int32   // lowest shard of the rotation, which names the rotation on the wire; -1: none
	pieces  int     // pieces of the rotation's shards
	missing int     // of these, not ready yet in this iteration
	held    []int32 // ready and not granted, in the order in which they became ready
	open    bool    // granted, in this iteration, and given to the send policy
	unsent  int     // pieces given to the send policy that the transport has not sent
	queued  int32   // epoch of the grant whose push waits until those of earlier grants have left, -1: none does

	grantedAt time.Duration
	waited    time.Duration // of the last push that left, from its grant until it was given to the send policy
	void      int32         // grants up to this epoch are revoked, -1: none
}

// granting is a worker's side of all grants.
type granting struct {
	gates     []grantGate // per server; nil if no shard waits for grants
	queue     []int32     // servers whose grants wait for the link, in order
	ungranted int         // pieces that the gates hold
}

// HoldBack makes the worker wait for grants before it pushes the shards whose scheme schedules the link. schemeOf names
// the scheme of a rule. HoldBack must be called before the first input.
func (w *Worker) HoldBack(schemeOf func(rule int) string) {
	for i := range w.plan.Shards {
		sh := &w.plan.Shards[i]
		if !Scheduled(schemeOf(sh.Rule)) {
			continue
		}
		if w.grants.gates == nil {
			w.grants.gates = slices.Repeat([]grantGate{{first: -1, void: -1, queued: -1}}, w.plan.Servers)
		}
		w.shards[i].scheduled = true
		t := &w.grants.gates[sh.Server]
		if t.first < 0 {
			t.first = sh.ID
		}
		t.pieces += len(sh.Pieces)
		t.missing = t.pieces
	}
}

// holdForGrant holds a piece back. With the last piece for a server it announces the push.
func (w *Worker) holdForGrant(piece int32, server int32, out []Effect) []Effect {
	t := &w.grants.gates[server]
	t.held = append(t.held, piece)
	w.grants.ungranted++
	if t.missing--; t.missing > 0 {
		return out
	}
	return w.announce(server, out)
}

func (w *Worker) announce(server int32, out []Effect) []Effect {
	m := wire.Header{Kind: wire.PushReady, Worker: w.me, Shard: w.grants.gates[server].first, Iter: w.iter, Blocked: w.head.Blocked,
		Clock: int64(w.grants.gates[server].waited)}
	return append(out, Effect{Kind: Send, To: server, Msg: m})
}

// grantOrRevoke opens a gate, or makes a grant void. It ignores a message about another iteration, and a grant that is
// void.
func (w *Worker) grantOrRevoke(in Input, out []Effect) []Effect {
	m := in.Msg
	w.must(m.Worker == w.me && w.shards[m.Shard].scheduled, in)
	server := w.plan.Shards[m.Shard].Server
	t := &w.grants.gates[server]
	waits := m.Iter == w.iter && !t.open
	w.must(!waits || t.missing == 0 && w.state != Finished, in)
	if m.Kind == wire.Revoke {
		t.void = max(t.void, m.Epoch)
		if !waits || t.queued > m.Epoch { // there is a later grant
			return out
		}
		w.leaveQueue(server)
		return w.announce(server, out)
	}
	if !waits || m.Epoch <= t.void || t.queued >= 0 {
		return out
	}
	t.queued, t.grantedAt = m.Epoch, w.now
	w.grants.queue = append(w.grants.queue, server)
	return w.advance(w.pushGranted(out))
}

// pushGranted gives the push of the first grant to the send policy, unless that of an earlier one is on its way.
func (w *Worker) pushGranted(out []Effect) []Effect {
	if len(w.grants.queue) == 0 || slices.ContainsFunc(w.grants.gates, func(t grantGate) bool { return t.unsent > 0 }) {
		return out
	}
	server := w.grants.queue[0]
	w.leaveQueue(server)
	t := &w.grants.gates[server]
	t.open, t.unsent, t.waited = true, len(t.held), w.now-t.grantedAt
	for _, p := range t.held {
		w.grants.ungranted--
		out = w.tellPolicy(pushEvent(send.Handed, &w.plan.Pieces[p], server), out)
	}
	t.held = t.held[:0]
	return out
}

func (w *Worker) leaveQueue(server int32) {
	w.grants.gates[server].queued = -1
	w.grants.queue = slices.DeleteFunc(w.grants.queue, func(s int32) bool { return s == server })
}

// grantedSent notes that a piece has left. After the last one of a server's push the next push may go.
func (w *Worker) grantedSent(piece int32, out []Effect) []Effect {
	if !w.shards[w.plan.Pieces[piece].Shard].scheduled {
		return out
	}
	w.grants.gates[w.serverOf(piece)].unsent--
	return w.pushGranted(out)
}

// closeGates begins an iteration.
func (w *Worker) closeGates() {
	for m := range w.grants.gates {
		t := &w.grants.gates[m]
		t.missing, t.open = t.pieces, false
	}
}

// Ungranted lists the servers whose grants the worker waits for, for the stall report.
func (w *Worker) Ungranted() []int32 {
	var servers []int32
	for m := range w.grants.gates {
		if len(w.grants.gates[m].held) > 0 {
			servers = append(servers, int32(m))
		}
	}
	return servers
}

// checkGates verifies that a worker is not done pushing while a gate holds pieces, and that a granted push waits for
// nothing but pieces on their way.
func (w *Worker) checkGates() error {
	n, unsent := 0, 0
	for m := range w.grants.gates {
		t := &w.grants.gates[m]
		n, unsent = n+len(t.held), unsent+t.unsent
		if t.open && len(t.held) > 0 || t.missing < 0 {
			return fmt.Errorf("core: worker %d holds %d pieces for server %d, granted: %v; %d are missing", w.me, len(t.held), m, t.open, t.missing)
		}
	}
	if unsent > w.sending.inFlight+w.sending.policy.Held() || len(w.grants.queue) > 0 && unsent == 0 {
		return fmt.Errorf("core: worker %d: %d pieces of granted pushes are on their way, of which %d are sent and %d "+
			"held; servers %v wait for them", w.me, unsent, w.sending.inFlight, w.sending.policy.Held(), w.grants.queue)
	}
	if n != w.grants.ungranted || n > 0 && w.state != Computing && w.state != Pushing {
		return fmt.Errorf("core: worker %d is %v and holds %d pieces, counted %d", w.me, w.state, n, w.grants.ungranted)
	}
	return nil
}

// Scheduled says whether the scheme of that name makes workers wait for grants.
func Scheduled(name string) bool {
	e, ok := scheme.All.Lookup(name)
	return ok && e.Scope == scheme.PerServer
}

// Together lists the shards that one scheme instance decides for, shard id among them, ascending. These are all shards
// of the server that have the same scheme, where that scheme schedules the link, and else id alone. schemeOf names the
// scheme of a rule.
func Together(plan *shard.Plan, id int32, schemeOf func(rule int) string) []int32 {
	name := schemeOf(plan.Shards[id].Rule)
	if !Scheduled(name) {
		return []int32{id}
	}
	var ids []int32
	for _, other := range plan.OfServer(plan.Shards[id].Server) {
		if schemeOf(plan.Shards[other].Rule) == name {
			ids = append(ids, other)
		}
	}
	return ids
}

// turn is the worker whose turn it is in a rotation, and whether others wait for it.
func (sh *ownShard) turn() (w int32, awaited bool) {
	if t, ok := sh.scheme.(interface{ Turn() (int32, bool) }); ok {
		return t.Turn()
	}
	return 0, false
}

// obeyLink obeys a decision about the link, or one that is a message to the worker or an alarm for the driver.
func (s *Server) obeyLink(d scheme.Decision, out []Effect) []Effect {
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
	return append(out, Effect{Kind: Send, To: d.Worker, Msg: m})
}

// tellReady tells the scheme of a rotation that a worker's push is ready.
func (s *Server) tellReady(in Input, out []Effect) []Effect {
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
func (s *Server) tellSent(sh *ownShard, w int32, out []Effect) []Effect {
	if !sh.schedulesLink || s.members.left[w] {
		return out
	}
	return s.decide(sh, scheme.Event{Kind: scheme.Sent, Worker: w, Shard: sh.id, Iter: sh.peers[w].clock}, out)
}
