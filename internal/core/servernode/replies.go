package servernode

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

func (s *Server) reply(sh *ownShard, d scheme.Decision, out []core.Effect) []core.Effect {
	k := &sh.peers[d.Worker]
	sh.stats.DelayedFor += k.answer(s.now)
	if k.replyInFlight() { // the last reply has arrived; its ReplySent has not
		k.replyNext, k.nextIter = true, d.Iter
		return out
	}
	return s.send(sh, d.Worker, d.Iter, out)
}

func (s *Server) send(sh *ownShard, w int32, iter int64, out []core.Effect) []core.Effect {
	if s.holdReply(sh, w, iter) {
		return out
	}
	iter = s.letsInto(sh, w, s.skipTo(sh, iter))
	m := wire.Header{Kind: wire.Reply, Worker: w, Shard: sh.id, Iter: iter, Version: sh.versions.version, Clock: sh.minClock(iter)}
	s.tell(sh, &m)
	if sh.publishes() {
		f := &sh.peers[w].feed
		f.due = false // this reply has the newest version
		f.closed = f.closed || s.mustPull(sh)
	}
	return s.ship(sh, m, iter, s.copyStagedPushes(sh, w, out))
}

// ship sends the current version, with which its worker may start iterations up to into.
func (s *Server) ship(sh *ownShard, m wire.Header, into int64, out []core.Effect) []core.Effect {
	s.stopWhenSpent(sh)
	if s.mustPull(sh) {
		m.Flags |= wire.Ask
	}
	if sh.id == 0 && s.halt.stopping && into >= s.halt.stopAt {
		m.Flags |= wire.Stop
	} else if sh.id == 0 {
		sh.letInto = max(sh.letInto, into)
	}
	if sh.id == 0 && into == s.saveIter {
		m.Flags |= wire.Save
	}
	if sh.id == 0 && into == s.watch.announced {
		m.Flags |= wire.Change
	}
	k := &sh.peers[m.Worker]
	k.replyBuf = sh.versions.send()
	if k.near {
		m.Part = sh.versions.cur
		k.unread = unreadVersion{m.Kind, m.Iter}
		return append(out, core.Effect{Kind: core.Reply, To: m.Worker, Shard: sh.id, Src: sh.versions.cur, Msg: m, Near: true})
	}
	out = append(out, core.Effect{Kind: core.Reply, To: m.Worker, Shard: sh.id, Src: sh.versions.cur, Msg: m, Apart: s.policy != nil})
	return s.startReplyPieces(sh, m.Worker, m.Kind, out)
}

func (s *Server) replySent(sh *ownShard, in core.Input, out []core.Effect) []core.Effect {
	k := &sh.peers[in.Worker]
	s.must(k.replyBuf == in.Buf && sh.versions.refs[in.Buf] > 0, in)
	k.replyBuf = -1
	sh.versions.refs[in.Buf]--
	if k.replyNext {
		k.replyNext = false
		out = s.send(sh, in.Worker, max(k.nextIter, sh.closed), out) // v may have passed nextIter without this worker
	}
	out = s.publishDue(sh, in.Worker, out)
	return s.tellSent(sh, in.Worker, out)
}

// A server's replies leave whole, or piece by piece in the order of a send policy, separately for each worker:
//
//	Server                                                              Worker
//	Reply (the header alone) ─────────────────────────────────────────► Arrived
//	all pieces to the policy; those that it releases: ReplyPiece ─────► PieceLanded
//	ReplyPieceSent: the policy releases others; the last one: ReplySent
//
// So the parameters of the first layers overtake everything that waits to go to the same worker. The version of a reply
// is the one of its decision, and stays in its buffer until the last piece has left.

// unsent counts the pieces of one shard's reply in flight to one worker.
type unsent struct {
	missing int       // pieces that have not left
	held    int       // of these, pieces that the policy holds
	kind    wire.Kind // Reply or Publish
}

// makeUnsent prepares the shards for a send policy.
func (s *Server) makeUnsent() {
	if s.policy == nil {
		return
	}
	for _, id := range s.owned {
		s.shards[id].replyByPiece = true
	}
}

// startReplyPieces gives the pieces of a reply to the policy.
func (s *Server) startReplyPieces(sh *ownShard, w int32, kind wire.Kind, out []core.Effect) []core.Effect {
	if s.policy == nil {
		return out
	}
	pieces := s.plan.Shards[sh.id].Pieces
	sh.peers[w].unsent = unsent{missing: len(pieces), held: len(pieces), kind: kind}
	for i := range pieces {
		out = s.tellPolicy(replyEvent(send.Handed, &pieces[i], w), out)
	}
	return out
}

// tellPolicy tells the send policy of an event and sends the pieces that it releases.
func (s *Server) tellPolicy(ev send.Event, out []core.Effect) []core.Effect {
	s.released = s.policy.Step(ev, s.released[:0])
	for _, p := range s.released {
		sh := s.shards[s.plan.Pieces[p].Shard]
		k := &sh.peers[ev.To]
		k.unsent.held--
		out = append(out, core.Effect{Kind: core.ReplyPiece, To: ev.To, Shard: sh.id, Piece: p, Src: k.replyBuf,
			Msg: wire.Header{Kind: k.unsent.kind}})
	}
	return out
}

// pieceSent notes that a piece of a reply has left.
func (s *Server) pieceSent(in core.Input, out []core.Effect) []core.Effect {
	p := &s.plan.Pieces[in.Piece]
	sh, w := s.shards[p.Shard], in.Worker
	s.must(sh != nil && sh.replyByPiece, in)
	k := &sh.peers[w]
	s.must(k.replyInFlight() && k.unsent.missing > k.unsent.held, in)
	k.unsent.missing--
	return s.finishReply(sh, w, s.tellPolicy(replyEvent(send.Sent, p, w), out))
}

// finishReply ends a reply whose last piece has left.
func (s *Server) finishReply(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	k := &sh.peers[w]
	if !k.replyInFlight() || k.unsent.missing > 0 {
		return out
	}
	return s.replySent(sh, core.Input{Kind: core.ReplySent, Shard: sh.id, Worker: w, Buf: k.replyBuf}, out)
}

// forgetReplies discards the pieces that wait for a worker's previous life: they must not reach the next life.
func (s *Server) forgetReplies(w int32, out []core.Effect) []core.Effect {
	if s.policy == nil {
		return out
	}
	s.released = s.policy.Step(send.Event{Kind: send.Forgotten, To: w}, s.released[:0])
	for _, id := range s.owned {
		sh := s.shards[id]
		u := &sh.peers[w].unsent
		u.missing -= u.held
		u.held = 0
		out = s.finishReply(sh, w, out)
	}
	return out
}

func replyEvent(kind send.EventKind, p *shard.Piece, to int32) send.Event {
	return send.Event{Kind: kind, Piece: p.ID, Layer: p.Layer, Shard: p.Shard, To: to, Bytes: p.ReplyBytes}
}

// checkUnsent verifies that a reply is in flight exactly while pieces of it have not left.
func (sh *ownShard) checkUnsent() error {
	for w := range sh.peers {
		k := &sh.peers[w]
		u, apart := k.unsent, sh.replyByPiece && k.replyInFlight() && !k.near
		if u.held < 0 || u.missing < u.held || apart != (u.missing > 0) {
			return fmt.Errorf("core: shard %d: the reply to worker %d has %d pieces that have not left, the policy holds %d, and its buffer is %d",
				sh.id, w, u.missing, u.held, k.replyBuf)
		}
	}
	return nil
}
