package workernode

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/policy/send"
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
		if !inturn.Scheduled(schemeOf(sh.Rule)) {
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
func (w *Worker) holdForGrant(piece int32, server int32, out []core.Effect) []core.Effect {
	t := &w.grants.gates[server]
	t.held = append(t.held, piece)
	w.grants.ungranted++
	if t.missing--; t.missing > 0 {
		return out
	}
	return w.announce(server, out)
}

func (w *Worker) announce(server int32, out []core.Effect) []core.Effect {
	m := wire.Header{Kind: wire.PushReady, Worker: w.me, Shard: w.grants.gates[server].first, Iter: w.iter, Blocked: w.head.Blocked,
		Clock: int64(w.grants.gates[server].waited)}
	return append(out, core.Effect{Kind: core.Send, To: server, Msg: m})
}

// grantOrRevoke opens a gate, or makes a grant void. It ignores a message about another iteration, and a grant that is
// void.
func (w *Worker) grantOrRevoke(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	w.must(m.Worker == w.me && w.shards[m.Shard].scheduled, in)
	server := w.plan.Shards[m.Shard].Server
	t := &w.grants.gates[server]
	waits := m.Iter == w.iter && !t.open
	w.must(!waits || t.missing == 0 && w.state != core.Finished, in)
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
func (w *Worker) pushGranted(out []core.Effect) []core.Effect {
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
func (w *Worker) grantedSent(piece int32, out []core.Effect) []core.Effect {
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
	if n != w.grants.ungranted || n > 0 && w.state != core.Computing && w.state != core.Pushing {
		return fmt.Errorf("core: worker %d is %v and holds %d pieces, counted %d", w.me, w.state, n, w.grants.ungranted)
	}
	return nil
}
