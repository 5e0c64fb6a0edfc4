package servernode

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// A worker and a server on one host share memory: then they exchange headers alone.
//
//	Worker                                               Server
//	Send Push, SendPiece: says that it is there ───────► PieceLanded: it stays where it is, in the worker's memory
//	Send Pull ─────────────────────────────────────────► Fold reads it there
//	Arrived Reply: Read; its gradients are free ◄─────── Own of what is not folded yet; Reply, with the buffer's number
//	next Push, Taken or Left ──────────────────────────► the version was read: its buffer is free
//
// A push is copied nowhere if it is folded at once, or together with the pushes of the round that its worker waits for.
// A version is copied once. A Read or a Fold has no acknowledgement of its own: a message that is sent anyway carries
// it. Where a worker keeps a copy of a shard it writes the next gradients without waiting for a reply, so its pushes of
// that shard go by messages. The send policy orders only what is sent.
//
// A worker that reads a version late costs no more buffers: one version of each worker may be in flight, as elsewhere.

// unreadVersion is the version that a near worker was told of and has not yet shown to have read.
type unreadVersion struct {
	kind wire.Kind // Reply or Publish
	iter int64     // of a Reply: the worker's next push is of this iteration or a later one
}

// makeNear records which workers share memory with the server.
func (s *Server) makeNear(near func(shard, worker int32) bool) {
	for _, id := range s.owned {
		if near == nil {
			break
		}
		sh := s.shards[id]
		for w := range sh.peers {
			sh.peers[w].near = near(id, int32(w))
		}
	}
}

// pushIsReadInPlace says whether the pushes of a worker are read in the worker's memory.
func (sh *ownShard) pushIsReadInPlace(w int32) bool {
	return sh.peers[w].near && sh.copies == scheme.Pulled
}

// copyStagedPushes copies the pushes of a worker that a later fold will read: the reply that follows lets the worker
// overwrite them.
func (s *Server) copyStagedPushes(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if !sh.pushIsReadInPlace(w) {
		return out
	}
	for p := sh.peers[w].staged; p != nil; p = p.next {
		if !p.onServer {
			p.onServer = true
			out = append(out, core.Effect{Kind: core.Own, To: w, Shard: sh.id, Slot: p.slot})
		}
	}
	return out
}

// noteRead ends the reply to a near worker when a message shows that the worker has read the version: a push that
// follows the reply, or Taken.
func (s *Server) noteRead(sh *ownShard, m wire.Header, out []core.Effect) []core.Effect {
	k := &sh.peers[m.Worker]
	if !k.near || !k.replyInFlight() {
		return out
	}
	r := k.unread
	if m.Kind == wire.Push && (r.kind != wire.Reply || m.Iter < r.iter) { // a push does not show that a published version was read
		return out
	}
	return s.endNearReply(sh, m.Worker, out)
}

// endNearReply ends the reply to a near worker.
func (s *Server) endNearReply(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if !sh.peers[w].near || !sh.peers[w].replyInFlight() {
		return out
	}
	return s.replySent(sh, core.Input{Kind: core.ReplySent, Shard: sh.id, Worker: w, Buf: sh.peers[w].replyBuf}, out)
}

// checkNear verifies that no staged push is in the memory of a worker that was answered.
func (sh *ownShard) checkNear() error {
	for w := range sh.peers {
		k := &sh.peers[w]
		for p := k.staged; p != nil; p = p.next {
			if k.replyInFlight() && sh.pushIsReadInPlace(int32(w)) && !p.onServer {
				return fmt.Errorf("core: shard %d: worker %d was answered while slot %d is in its memory", sh.id, w, p.slot)
			}
		}
	}
	return nil
}
