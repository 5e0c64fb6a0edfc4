package core

import (
	"fmt"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// A worker and a server on one host share memory: then headers are all that they send each other.
//
//	Worker                                               Server
//	Send Push, SendPiece: says that it is there ───────► PieceLanded: it stays where it is, in the worker's memory
//	Send Pull ─────────────────────────────────────────► Fold reads it there
//	Arrived Reply: Read; its gradients are free ◄─────── Own of what is not folded yet; Reply, with the buffer's number
//	next Push, Taken or Left ──────────────────────────► the version was read: its buffer is free
//
// So a push that is folded at once, or with the round that its worker waits for, is copied nowhere, and a version once.
// Nothing is sent in return for a Read or a Fold: a message that comes anyway says it. What a worker pushes of a shard that it
// keeps a copy of goes by messages, for it waits for no reply before it writes the next gradients. No send policy is asked
// about what is not sent.
//
// That a worker reads a version late takes no more buffers: one of each worker may be in flight, as ever.

// ShareMemory makes the worker read the versions of these shards in their server's memory. It is called before the first input.
func (w *Worker) ShareMemory(near func(shard int32) bool) {
	w.near = make([]bool, len(w.shards))
	for s := range w.near {
		w.near[s] = near(int32(s))
	}
}

func (w *Worker) isNear(s int32) bool { return w.near != nil && w.near[s] }

// lends says whether the server reads the worker's gradients of the shard where they are.
func (w *Worker) lends(s int32) bool { return w.isNear(s) && w.kind(s) == scheme.Pulled }

// readReply takes a reply whose version is read at once.
func (w *Worker) readReply(m wire.Header, out []Effect) []Effect {
	sh := &w.shards[m.Shard]
	for _, p := range w.plan.Shards[m.Shard].Pieces {
		w.early.pieces[p.ID].landed = true
		sh.landed++
		if w.early.pieces[p.ID].flying && w.lends(m.Shard) {
			w.flown(p.ID)
		}
	}
	return append(out, w.read(m))
}

func (w *Worker) read(m wire.Header) Effect {
	return Effect{Kind: Read, Shard: m.Shard, To: w.plan.Shards[m.Shard].Server, Src: m.Part}
}

// reading is the version that a near worker has been told of, and has not been heard to have read.
type reading struct {
	kind wire.Kind // Reply or Publish
	iter int64     // of a Reply: the worker's next push is of this iteration or a later one
}

// makeNear notes which workers share memory with the server.
func (s *Server) makeNear(near func(shard, worker int32) bool) {
	for _, id := range s.order {
		if near == nil {
			break
		}
		sh := s.shards[id]
		sh.near, sh.reads = make([]bool, s.workers), make([]reading, s.workers)
		for w := range sh.near {
			sh.near[w] = near(id, int32(w))
		}
	}
}

func (sh *ownShard) isNear(w int32) bool { return sh.near != nil && sh.near[w] }

// lent says whether the pushes of a worker are read where they are.
func (sh *ownShard) lent(w int32) bool { return sh.isNear(w) && sh.copies == scheme.Pulled }

// takeOver copies what a worker has pushed and a fold will read later: the reply that follows lets it write there again.
func (s *Server) takeOver(sh *ownShard, w int32, out []Effect) []Effect {
	if !sh.lent(w) {
		return out
	}
	for p := sh.staged[w]; p != nil; p = p.next {
		if !p.own {
			p.own = true
			out = append(out, Effect{Kind: Own, To: w, Shard: sh.id, Slot: p.slot})
		}
	}
	return out
}

// wasRead ends the reply to a near worker when what it says now shows that it has read the version: a push that follows
// the reply, or Taken.
func (s *Server) wasRead(sh *ownShard, m wire.Header, out []Effect) []Effect {
	if !sh.isNear(m.Worker) || sh.sending[m.Worker] < 0 {
		return out
	}
	r := sh.reads[m.Worker]
	if m.Kind == wire.Push && (r.kind != wire.Reply || m.Iter < r.iter) { // a push says nothing of what was published
		return out
	}
	return s.release(sh, m.Worker, out)
}

// release ends the reply to a near worker.
func (s *Server) release(sh *ownShard, w int32, out []Effect) []Effect {
	if !sh.isNear(w) || sh.sending[w] < 0 {
		return out
	}
	return s.replySent(sh, Input{Kind: ReplySent, Shard: sh.id, Worker: w, Buf: sh.sending[w]}, out)
}

// checkNear: when nothing of a worker's is on its way and it was let go on, its memory is its own.
func (sh *ownShard) checkNear() error {
	for w := range sh.near {
		for p := sh.staged[w]; p != nil; p = p.next {
			if sh.sending[w] >= 0 && sh.lent(int32(w)) && !p.own {
				return fmt.Errorf("core: shard %d: worker %d was answered, and slot %d is in its memory", sh.id, w, p.slot)
			}
		}
	}
	return nil
}
