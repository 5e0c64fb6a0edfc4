package core

import (
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// A worker may leave and come back. What it pushed counts, once: a server remembers how far each worker came at each
// shard, and lets it go on no earlier. A driver must see to it that nothing of an earlier life, no message and no
// piece, reaches a node once the worker's Joined has, and that its servers send nothing into the new life that was
// meant for the old one; under plain MPI a lost rank ends the job, so that only the simulator and tests bring one back.

// NewJoining makes worker me of the plan anew, as one that comes back and remembers nothing: the servers say with
// their first replies where it goes on, and the largest iteration that any shard names is the one.
func NewJoining(me int32, plan *shard.Plan, policy send.Policy) *Worker {
	w := NewWorker(me, plan, policy, 0)
	w.joins = true
	return w
}

// begin asks for the first parameters. One that comes back tells its servers with the same message: a pull of its own
// could overtake it, and would be taken for the last life's.
func (w *Worker) begin(out []Effect) []Effect {
	w.open = len(w.shards)
	if !w.joins {
		for s := range w.shards {
			out = w.pull(int32(s), out)
		}
		return out
	}
	for s := range w.shards {
		w.shards[s].pulled = true
		out = append(out, Effect{Kind: Expect, Shard: int32(s), To: w.plan.Shards[s].Server})
	}
	for m := range w.plan.Servers {
		out = append(out, Effect{Kind: Send, To: int32(m), Msg: wire.Header{Kind: wire.Joined, Worker: w.me}})
	}
	return out
}

// gone ends a worker at all shards of the server.
func (s *Server) gone(w int32, out []Effect) []Effect {
	s.left[w] = true
	s.here--
	for _, id := range s.order {
		out = s.leave(s.shards[id], w, out)
	}
	for _, id := range s.order { // a scheme may decide for several shards: all of them know by now
		sh := s.shards[id]
		out = s.change(sh, s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: id}, out))
	}
	return out
}

// leave ends a worker at one shard, before any scheme hears of it.
func (s *Server) leave(sh *ownShard, w int32, out []Effect) []Effect {
	sh.setClock(w, gone)
	sh.waits[w], sh.asked[w], sh.since[w], sh.held[w] = false, false, 0, -1
	sh.forget(w)
	if p := sh.landing[w]; p != nil { // it died half-way through a push
		sh.landing[w] = nil
		sh.freeSlot(p.slot)
		out = append(out, Effect{Kind: Unstage, To: w, Shard: sh.id, Slot: p.slot})
	}
	return s.unsubscribe(sh, w, out)
}

// join takes a worker back, and answers its pulls of all shards. If nobody noticed that it was gone, it goes now. A
// server without a shard has no part in it: nothing of its would keep the worker's next Left behind this message.
func (s *Server) join(w int32, out []Effect) []Effect {
	if len(s.order) == 0 {
		return out
	}
	if !s.left[w] {
		out = s.gone(w, out)
	}
	s.left[w], s.done = false, false
	s.here++
	for _, id := range s.order { // a scheme may decide for several shards: it may hear of them one by one
		sh := s.shards[id]
		sh.rejoin(w)
		out = s.change(sh, s.decide(sh, scheme.Event{Kind: scheme.Joined, Worker: w, Shard: id, Iter: sh.reached[w]}, out))
	}
	for _, id := range s.order {
		sh := s.shards[id]
		sh.asked[w], sh.wants[w] = true, sh.reached[w]
		out = s.wanted(sh, w, out)
	}
	return out
}

// rejoin puts a worker back among those that v is the smallest clock of: at v, or where its own pushes end. Where
// nobody is in the run v is what the scheme knows of all that was pushed.
func (sh *ownShard) rejoin(w int32) {
	v := max(sh.low, sh.closed)
	if sh.low == gone {
		v = max(sh.closed, min(slices.Max(sh.reached), sh.cut.at))
	}
	sh.clock[w] = max(v, sh.reached[w])
	sh.lowest()
	if sh.feeds != nil {
		sh.feeds[w] = feed{} // what was on its way is lost with the life before
	}
}
