package core

import (
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// A worker may leave and come back, and each time begins another life; the first is 0. What it pushed counts, once: a
// server remembers how far each worker came at each shard, and lets it go on no earlier. A driver must see to it that
// nothing else of an earlier life, no push, pull or piece, reaches a server after the next Joined, and that no reply to
// it reaches the worker; a Left or Joined that is out of date is ignored. Under plain MPI a lost rank ends the job, so
// that only the simulator and tests bring one back.

// NewJoining makes worker me of the plan anew for its life-th life, as one that comes back at a clock, the Clock of its
// life before. The servers say with their first replies where it goes on, no earlier than that, and the largest
// iteration that any shard names is the one. All shards must hear the same clock: by what each of them had got of its
// last pushes, two workers that come back could wait for each other.
func NewJoining(me int32, plan *shard.Plan, policy send.Policy, life, clock int64) *Worker {
	w := NewWorker(me, plan, policy, clock)
	w.life = life
	return w
}

// Clock is the number of iterations that the worker has pushed or passed over, one more if it has begun to push another.
func (w *Worker) Clock() int64 {
	begun := slices.ContainsFunc(w.shards, func(sh workerShard) bool { return sh.ready > 0 })
	if w.state == Computing && !begun && !w.isHelping() {
		return w.iter
	}
	return w.iter + 1
}

// begin asks for the first parameters. One that comes back tells its servers with the same message: a pull of its own
// could overtake it, and would be taken for the last life's.
func (w *Worker) begin(out []Effect) []Effect {
	w.open = len(w.shards)
	if w.life == 0 {
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
		out = append(out, Effect{Kind: Send, To: int32(m), Msg: wire.Header{Kind: wire.Joined, Worker: w.me, Iter: w.iter + 1, Clock: w.life}})
	}
	return out
}

// setLife takes note of a worker's life.
func (s *Server) setLife(w int32, life int64) {
	s.ended += life - s.life[w]
	s.life[w] = life
}

// ends takes the end of a worker's life. It may be that of one which this server never heard of.
func (s *Server) ends(m wire.Header, out []Effect) []Effect {
	w, life := m.Worker, m.Clock
	if life < s.life[w] || life == s.life[w] && s.left[w] || !s.left[w] && s.notYet(m) {
		return out
	}
	s.setLife(w, life)
	if !s.left[w] {
		out = s.gone(w, out)
	}
	if s.here == 0 {
		out = s.allLeft(out)
	}
	return out
}

// gone ends a worker at all shards of the server.
func (s *Server) gone(w int32, out []Effect) []Effect {
	s.left[w] = true
	s.here--
	s.ended++
	for _, id := range s.order {
		out = s.leave(s.shards[id], w, out)
	}
	for _, id := range s.order { // a scheme may decide for several shards: all of them know by now
		sh := s.shards[id]
		out = s.change(sh, s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: id}, out))
	}
	for _, id := range s.order { // who has left reads nothing any more
		out = s.release(s.shards[id], w, out)
	}
	return out
}

// leave ends a worker at one shard, before any scheme hears of it.
func (s *Server) leave(sh *ownShard, w int32, out []Effect) []Effect {
	sh.setClock(w, gone)
	sh.waits[w], sh.asked[w], sh.since[w], sh.held[w] = false, false, 0, -1
	if sh.shared {
		sh.ready[w] = -1
	}
	sh.forget(w)
	sh.forgetParts(w)
	if p := sh.landing[w]; p != nil { // it died half-way through a push
		sh.landing[w] = nil
		sh.freeSlot(p.slot)
		out = append(out, Effect{Kind: Unstage, To: w, Shard: sh.id, Slot: p.slot})
	}
	return s.unsubscribe(sh, w, out)
}

// join takes a worker back, and answers its pulls of all shards. If nobody noticed that it was gone, it goes now.
func (s *Server) join(w int32, life, clock int64, out []Effect) []Effect {
	if life <= s.life[w] {
		return out
	}
	if !s.left[w] {
		out = s.gone(w, out)
	}
	out = s.forgetReplies(w, out)
	s.setLife(w, life)
	s.left[w], s.done = false, false
	s.here++
	s.ended--
	for _, id := range s.order {
		s.shards[id].rejoin(w, clock)
	}
	for _, id := range s.order { // a scheme may decide for several shards: all of them know by now
		sh := s.shards[id]
		out = s.change(sh, s.decide(sh, scheme.Event{Kind: scheme.Joined, Worker: w, Shard: id, Iter: sh.reached[w]}, out))
	}
	for _, id := range s.order {
		sh := s.shards[id]
		sh.asked[w], sh.wants[w] = true, sh.reached[w]
		out = s.wanted(sh, w, out)
	}
	return out
}

// rejoin puts a worker back among those that v is the smallest clock of: at v, or at its clock where that is further. Where
// nobody is in the run v is what the scheme knows of all that was pushed.
func (sh *ownShard) rejoin(w int32, clock int64) {
	if clock > sh.reached[w] {
		sh.stats.Skipped += clock - sh.reached[w]
		sh.reached[w] = clock
	}
	v := sh.v()
	if sh.low == gone && !sh.agrees {
		v = max(sh.closed, min(slices.Max(sh.reached), sh.cut.at))
	}
	sh.clock[w] = max(v, sh.reached[w])
	sh.lowest()
	if sh.feeds != nil {
		sh.feeds[w] = feed{} // what was on its way is lost with the life before
	}
}
