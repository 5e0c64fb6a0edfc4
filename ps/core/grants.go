package core

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// Some schemes schedule a server's link: one instance decides for all their shards there, their rotation. A worker
// holds the pieces of these shards back from its send policy until that server grants them:
//
//	Worker                                              Server
//	PieceReady ─► kept; the last one: Send PushReady ──► Arrived: Ready ─► scheme
//	Arrived Grant: all pieces to the send policy ◄────── Send Grant ◄───── now, or at an Alarm that it asked for
//
// A grant holds back its own server's shards and nothing else, and no other shard's reply is needed for it. A grant
// that comes too late to be used is void by its Revoke, whichever comes first; the worker announces the push again.
// A Revoke that comes after the push was let go changes nothing: the server takes the push out of turn.

// turnstile is what one worker holds back for one server.
type turnstile struct {
	first   int32   // lowest shard of the rotation, which names it on the wire; -1: none
	pieces  int     // of its shards
	missing int     // of these not ready yet, in this iteration
	kept    []int32 // ready and not granted, in the order in which they became ready
	open    bool    // granted in this iteration
	void    int32   // grants up to this epoch are revoked, -1: none
}

// HoldBack makes the worker wait for grants before it pushes the shards whose scheme schedules the link; schemeOf names
// the scheme of a rule. It is called before the first input.
func (w *Worker) HoldBack(schemeOf func(rule int) string) {
	for i := range w.plan.Shards {
		sh := &w.plan.Shards[i]
		if !Scheduled(schemeOf(sh.Rule)) {
			continue
		}
		if w.stiles == nil {
			w.stiles = slices.Repeat([]turnstile{{first: -1, void: -1}}, w.plan.Servers)
		}
		w.shards[i].scheduled = true
		t := &w.stiles[sh.Server]
		if t.first < 0 {
			t.first = sh.ID
		}
		t.pieces += len(sh.Pieces)
		t.missing = t.pieces
	}
}

// keep holds a piece back, and announces the push of its server with the last one.
func (w *Worker) keep(piece int32, server int32, out []Effect) []Effect {
	t := &w.stiles[server]
	t.kept = append(t.kept, piece)
	w.kept++
	if t.missing--; t.missing > 0 {
		return out
	}
	return w.announce(server, out)
}

func (w *Worker) announce(server int32, out []Effect) []Effect {
	m := wire.Header{Kind: wire.PushReady, Worker: w.me, Shard: w.stiles[server].first, Iter: w.iter, Blocked: w.head.Blocked}
	return append(out, Effect{Kind: Send, To: server, Msg: m})
}

// grantOrRevoke opens a turnstile, or takes the key back. What is about another iteration, or void, is ignored.
func (w *Worker) grantOrRevoke(in Input, out []Effect) []Effect {
	m := in.Msg
	w.must(m.Worker == w.me && w.shards[m.Shard].scheduled, in)
	server := w.plan.Shards[m.Shard].Server
	t := &w.stiles[server]
	waits := m.Iter == w.iter && !t.open
	w.must(!waits || t.missing == 0 && w.state != Finished, in)
	if m.Kind == wire.Revoke {
		t.void = max(t.void, m.Epoch)
		if waits {
			return w.announce(server, out)
		}
		return out
	}
	if !waits || m.Epoch <= t.void {
		return out
	}
	t.open = true
	for _, p := range t.kept {
		w.kept--
		out = w.letGo(pushEvent(send.Handed, &w.plan.Pieces[p], server), out)
	}
	t.kept = t.kept[:0]
	return w.advance(out)
}

// closeStiles begins an iteration.
func (w *Worker) closeStiles() {
	for m := range w.stiles {
		t := &w.stiles[m]
		t.missing, t.open = t.pieces, false
	}
}

// Ungranted lists the servers whose grants the worker waits for, for the stall report.
func (w *Worker) Ungranted() []int32 {
	var servers []int32
	for m := range w.stiles {
		if len(w.stiles[m].kept) > 0 {
			servers = append(servers, int32(m))
		}
	}
	return servers
}

// checkStiles: a worker is not done pushing while it keeps anything.
func (w *Worker) checkStiles() error {
	n := 0
	for m := range w.stiles {
		t := &w.stiles[m]
		n += len(t.kept)
		if t.open && len(t.kept) > 0 || t.missing < 0 {
			return fmt.Errorf("core: worker %d keeps %d pieces for server %d, which are granted: %v; %d are missing", w.me, len(t.kept), m, t.open, t.missing)
		}
	}
	if n != w.kept || n > 0 && w.state != Computing && w.state != Pushing {
		return fmt.Errorf("core: worker %d is %v and keeps %d pieces, counted %d", w.me, w.state, n, w.kept)
	}
	return nil
}

// Scheduled says whether the scheme of that name makes workers wait for grants.
func Scheduled(name string) bool {
	e, ok := scheme.Lookup(name)
	return ok && e.Scope == scheme.PerServer
}

// Together lists the shards that one instance decides for, shard id among them, ascending: id alone, or all shards of
// its server that have the same scheme, where that schedules the link. schemeOf names the scheme of a rule.
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

// turn is the worker that others wait for in a rotation, and whether any does.
func (sh *ownShard) turn() (w int32, awaited bool) {
	if t, ok := sh.scheme.(interface{ Turn() (int32, bool) }); ok {
		return t.Turn()
	}
	return 0, false
}

// schedule obeys a decision about the link: a message to the worker, or an alarm for the driver.
func (s *Server) schedule(d scheme.Decision, out []Effect) []Effect {
	m := wire.Header{Kind: wire.Grant, Worker: d.Worker, Shard: d.Shard, Iter: d.Iter, Epoch: int32(d.Epoch)}
	switch d.Kind {
	case scheme.WakeAt:
		return append(out, Effect{Kind: WakeAt, Shard: d.Shard, At: d.At})
	case scheme.Revoke:
		m.Kind = wire.Revoke
	case scheme.Grant:
		s.granted(s.shards[d.Shard], d.Worker)
	default:
		panic(fmt.Sprintf("core: server %d shard %d: decision %v is not built", s.me, d.Shard, d.Kind))
	}
	if d.Epoch > math.MaxInt32 {
		panic(fmt.Sprintf("core: server %d revoked %d grants", s.me, d.Epoch))
	}
	return append(out, Effect{Kind: Send, To: d.Worker, Msg: m})
}

// pushReady tells the scheme of a rotation that a worker has a push ready.
func (s *Server) pushReady(in Input, out []Effect) []Effect {
	m := in.Msg
	sh := s.shards[m.Shard]
	s.must(sh != nil && sh.shared, in)
	if sh.ready[m.Worker] < 0 && !s.left[m.Worker] {
		sh.ready[m.Worker] = s.now
	}
	out = s.decide(sh, scheme.Event{Kind: scheme.Ready, Worker: m.Worker, Shard: m.Shard, Iter: m.Iter, Blocked: time.Duration(m.Blocked)}, out)
	if sh.ready[m.Worker] >= 0 {
		sh.stats.Turns.Delayed++
	}
	return out
}

// granted ends the wait of a push.
func (s *Server) granted(sh *ownShard, w int32) {
	if sh.ready[w] >= 0 {
		sh.stats.Turns.DelayedFor += s.now - sh.ready[w]
		sh.ready[w] = -1
	}
}

// turns are the counts of this server's rotation: the first of its shards has those of the waits, which its name stands for
// on the wire, and the scheme the others.
func (s *Server) turns() Turns {
	first := s.shards[s.order[slices.IndexFunc(s.order, func(id int32) bool { return s.shards[id].shared })]]
	t := first.stats.Turns
	if c, ok := first.scheme.(interface{ Passed() (missed, strays int64) }); ok {
		missed, strays := c.Passed()
		t.Missed, t.Strays = t.Missed+missed, t.Strays+strays
	}
	return t
}

// sent tells a scheme that schedules the link that a reply has left it.
func (s *Server) sent(sh *ownShard, w int32, out []Effect) []Effect {
	if !sh.shared || s.left[w] {
		return out
	}
	return s.decide(sh, scheme.Event{Kind: scheme.Sent, Worker: w, Shard: sh.id, Iter: sh.clock[w]}, out)
}
