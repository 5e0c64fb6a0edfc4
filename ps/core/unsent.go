package core

import (
	"fmt"

	"fluentps/comm/wire"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// A server's replies leave whole, or piece by piece in the order of a send policy, each worker's apart:
//
//	Server                                                              Worker
//	Reply (the header alone) ─────────────────────────────────────────► Arrived
//	all pieces to the policy; those that it lets go: ReplyPiece ──────► PieceLanded
//	ReplyPieceSent: the policy lets others go; the last one: ReplySent
//
// So the parameters of the first layers overtake all that waits for the way to the same worker. The version of a reply
// is that of its decision, and stays in its buffer until the last piece has left.

// unsent counts the pieces of the reply in flight to one worker, of one shard.
type unsent struct {
	missing int       // not Sent
	held    int       // of these, not let go by the policy
	kind    wire.Kind // Reply or Publish
}

// makeUnsent prepares the shards for a policy.
func (s *Server) makeUnsent() {
	if s.policy == nil {
		return
	}
	for _, id := range s.order {
		s.shards[id].unsent = make([]unsent, s.workers)
	}
}

// handOut gives the pieces of a reply to the policy.
func (s *Server) handOut(sh *ownShard, w int32, kind wire.Kind, out []Effect) []Effect {
	if s.policy == nil {
		return out
	}
	pieces := s.plan.Shards[sh.id].Pieces
	sh.unsent[w] = unsent{missing: len(pieces), held: len(pieces), kind: kind}
	for i := range pieces {
		out = s.letOut(replyEvent(send.Handed, &pieces[i], w), out)
	}
	return out
}

// letOut tells the policy, and sends what it lets go.
func (s *Server) letOut(ev send.Event, out []Effect) []Effect {
	s.let = s.policy.Step(ev, s.let[:0])
	for _, p := range s.let {
		sh := s.shards[s.plan.Pieces[p].Shard]
		sh.unsent[ev.To].held--
		out = append(out, Effect{Kind: ReplyPiece, To: ev.To, Shard: sh.id, Piece: p, Src: sh.sending[ev.To], Msg: wire.Header{Kind: sh.unsent[ev.To].kind}})
	}
	return out
}

// pieceSent: a piece of a reply has left.
func (s *Server) pieceSent(in Input, out []Effect) []Effect {
	p := &s.plan.Pieces[in.Piece]
	sh, w := s.shards[p.Shard], in.Worker
	s.must(sh != nil && sh.unsent != nil && sh.sending[w] >= 0 && sh.unsent[w].missing > sh.unsent[w].held, in)
	sh.unsent[w].missing--
	return s.replyLeft(sh, w, s.letOut(replyEvent(send.Sent, p, w), out))
}

// replyLeft ends a reply whose last piece has left.
func (s *Server) replyLeft(sh *ownShard, w int32, out []Effect) []Effect {
	if sh.sending[w] < 0 || sh.unsent[w].missing > 0 {
		return out
	}
	return s.replySent(sh, Input{Kind: ReplySent, Shard: sh.id, Worker: w, Buf: sh.sending[w]}, out)
}

// forgetReplies: what waits for a worker of an earlier life must not reach the next one.
func (s *Server) forgetReplies(w int32, out []Effect) []Effect {
	if s.policy == nil {
		return out
	}
	s.let = s.policy.Step(send.Event{Kind: send.Forgotten, To: w}, s.let[:0])
	for _, id := range s.order {
		sh := s.shards[id]
		sh.unsent[w].missing -= sh.unsent[w].held
		sh.unsent[w].held = 0
		out = s.replyLeft(sh, w, out)
	}
	return out
}

// pushEvent is what a worker's send policy is told of a piece and the server that it goes to; replyEvent is the same of a
// server's policy and a worker.
func pushEvent(kind send.EventKind, p *shard.Piece, to int32) send.Event {
	return send.Event{Kind: kind, Piece: p.ID, Layer: p.Layer, Shard: p.Shard, To: to, Bytes: p.PushBytes}
}

func replyEvent(kind send.EventKind, p *shard.Piece, to int32) send.Event {
	return send.Event{Kind: kind, Piece: p.ID, Layer: p.Layer, Shard: p.Shard, To: to, Bytes: p.ReplyBytes}
}

// checkUnsent: a reply in flight has pieces that have not left.
func (sh *ownShard) checkUnsent() error {
	for w, u := range sh.unsent {
		if u.held < 0 || u.missing < u.held || (sh.sending[w] >= 0 && !sh.isNear(int32(w))) != (u.missing > 0) {
			return fmt.Errorf("core: shard %d: of a reply to worker %d %d pieces are missing and %d held, and its buffer is %d", sh.id, w, u.missing, u.held, sh.sending[w])
		}
	}
	return nil
}
