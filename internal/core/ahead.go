package core

import (
	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

// Pulling ahead. Where others may close an iteration that a worker still computes, the worker must hear of it at once. So it
// asks for the next parameters when it starts an iteration, not when it has pushed it:
//
//	Worker                                    Server
//	Compute; Pull of the next ──────────────► held until the iteration is closed, whoever pushed
//	Push ───────────────────────────────────► Pushed ─► scheme: v moves
//	all have replied: Answered ◄───────────── Reply to all
//	Cancel; nothing more of it is pushed
//
// Replies land while the worker computes; the driver computes on a copy of the parameters. A shard that has replied gets no push of
// that iteration any more, and all of it may be cancelled when every shard has replied. A reply says nothing of the
// worker's own pushes, so the server acknowledges each of them, and the worker does not leave before.
//
// With pulling ahead a worker may push for others without being asked: several workers compute the batch of one owner, and
// the server takes the first copy as the owner's push (parts.go). An owner is in the run as long as one of the
// workers is that compute its batches. Only then the scheme hears that the owner has left. So nobody waits for a batch that
// nobody computes.
//
// No worker waits for ever. A worker that has started iteration t pushes it, and all others that it computes of t, to each shard that
// has not let it past t. So every shard hears of each owner in the run of v or of a later iteration, and v moves on.

// Ahead says that the workers pull ahead.
type Ahead struct {
	// Owners are, per worker, the workers whose iterations it pushes; itself is the first. nil: itself alone.
	Owners [][]int32
	// Apart says that a worker pushes each of its own iterations in two parts, in order, and that the scheme hears of
	// each: they are not added up, because the first counts also if the second never comes. The second ends the
	// iteration. Owners is nil.
	Apart bool
}

// aheadState is a server's state of it.
type aheadState struct {
	owners [][]int32 // per worker
	live   []int32   // per owner: workers in the run that push its iterations
	lost   bool      // a worker was lost
	apart  bool
}

// makeAhead prepares the server for workers that pull ahead.
func (s *Server) makeAhead(c *Ahead) {
	if c == nil {
		return
	}
	a := &aheadState{owners: c.Owners, live: make([]int32, s.workers), apart: c.Apart}
	if a.owners == nil {
		for w := range s.workers {
			a.owners = append(a.owners, []int32{int32(w)})
		}
	}
	for _, of := range a.owners {
		for _, j := range of {
			a.live[j]++
		}
	}
	s.ahead, s.acks = a, true
	for _, id := range s.owned {
		sh := s.shards[id]
		sh.slots.most += AheadSlots(c.Owners) // after a loss a shard may have pushes of two iterations
		if c.Apart {
			sh.slots.most *= 2
		}
	}
}

// AheadSlots is the number of pushes that a shard may hold beside one per worker.
func AheadSlots(owners [][]int32) (n int32) {
	for _, of := range owners {
		n += int32(len(of)) - 1
	}
	return n
}

// isApart says whether iterations have two parts of which the scheme hears.
func (s *Server) isApart() bool { return s.ahead != nil && s.ahead.apart }

// isGone says whether nobody pushes the iterations of an owner any more.
func (s *Server) isGone(owner int32) bool {
	if s.ahead != nil {
		return s.ahead.live[owner] == 0
	}
	return s.members.left[owner]
}

// ownersOf adds n to the number of workers for each owner of w, and returns the owners whose number was or becomes 0.
func (s *Server) ownersOf(w, n int32) (changed []int32) {
	if s.ahead == nil {
		return []int32{w}
	}
	for _, j := range s.ahead.owners[w] {
		was := s.ahead.live[j]
		if s.ahead.live[j] += n; was == 0 || s.ahead.live[j] == 0 {
			changed = append(changed, j)
		}
	}
	return changed
}

// pullArrives notes whether a pull aligns its worker.
func (s *Server) pullArrives(m *wire.Header) {
	if s.ahead != nil {
		s.shards[m.Shard].peers[m.Worker].aligns = m.Part == isAgain
	}
}

// tryAhead hands a pull to the scheme once its iteration is open, so that the scheme answers at once. The scheme judges what
// the owner has pushed; the worker continues where its pull says, or at v.
func (s *Server) tryAhead(sh *ownShard, w int32, out []Effect) []Effect {
	k := &sh.peers[w]
	if !k.pullPending || s.members.left[w] || k.pullIter > sh.v() && !(s.ahead.lost && k.aligns) {
		return out
	}
	return s.wantedAhead(sh, w, out)
}

// noteLoss notes the end of a worker that does not say what it has pushed.
func (s *Server) noteLoss(m *wire.Header) {
	if s.ahead != nil && m.Iter == 0 && !s.ahead.lost {
		s.ahead.lost = true
		for _, id := range s.owned {
			s.shards[id].lookedAt = -1
		}
	}
}

func (s *Server) wantedAhead(sh *ownShard, w int32, out []Effect) []Effect {
	sh.peers[w].tell()
	sh.stats.Pulls++
	return s.decide(sh, scheme.Event{Kind: scheme.Wanted, Worker: w, Shard: sh.id, Iter: min(sh.peers[w].reached, sh.v())}, out)
}

// answerAhead hands over the pulls that waited for an iteration that is closed now.
func (s *Server) answerAhead(out []Effect) []Effect {
	if s.ahead == nil {
		return out
	}
	for _, id := range s.owned {
		sh := s.shards[id]
		if v := sh.v(); v != sh.lookedAt { // it falls if all had left, and one comes back
			sh.lookedAt = v
			for w := range int32(s.workers) {
				out = s.tryAhead(sh, w, out)
			}
		}
	}
	return out
}

// letsInto is the iteration that a reply lets a worker into, of which the scheme says iter. Under pulling ahead the owner may have pushed
// v already, through another worker; this worker computes it all the same.
func (s *Server) letsInto(sh *ownShard, w int32, iter int64) int64 {
	if s.ahead != nil {
		return max(sh.v(), sh.peers[w].pullIter)
	}
	return iter
}

// PullAhead makes the worker pull when an iteration starts. It must be called after SetWork, before the first input.
func (w *Worker) PullAhead() { w.work.ahead = true }

func (w *Worker) pullsAhead() bool { return w.work != nil && w.work.ahead }

// pullAhead asks every shard for the parameters of the next iteration.
func (w *Worker) pullAhead(out []Effect) []Effect {
	if !w.pullsAhead() {
		return out
	}
	w.work.silent = len(w.shards)
	for s := range w.shards {
		out = w.pull(int32(s), out)
	}
	return out
}

// isTooLate says of the push that the worker computes whether the shard takes it no more. That is decided with the push's first piece.
func (w *Worker) isTooLate(s int32) bool {
	sh := &w.shards[s]
	if sh.ready == 0 {
		sh.tooLate = w.pullsAhead() && sh.letInto > w.iter
	}
	return sh.tooLate
}

// align asks again the shards that have let the worker into an earlier iteration than another shard has. That happens
// if the worker, or a reply to it, is so slow that others close an iteration meanwhile. The worker then waits until
// all of its parameters belong to one iteration, so that all copies of a batch have the same gradient. The shards
// behind need nothing of this worker to get there: what others pushed to the first shard they push to all. Only
// pushes of a worker that was lost may be missing at some. So when a server knows of a loss, it answers such a pull
// at once, and the parameters may belong to different iterations, as those of a worker that skips iterations under
// other schemes do.
func (w *Worker) align(out []Effect) []Effect {
	if !w.pullsAhead() || w.replies.open > 0 || w.replies.stop {
		return out
	}
	for s := range w.shards {
		if sh := &w.shards[s]; sh.letInto < w.replies.next {
			out = w.pullAgain(int32(s), out)
		}
	}
	return out
}

// isAgain is the Part of a pull that aligns its worker.
const isAgain = 1

// pullAgain forgets the reply of a shard and asks for a later one.
func (w *Worker) pullAgain(s int32, out []Effect) []Effect {
	sh := &w.shards[s]
	sh.replied, sh.landed = false, 0
	w.replies.open++
	w.work.silent++
	w.early.unanswered += w.answersDue(s)
	for _, p := range w.plan.Shards[s].Pieces {
		w.early.pieces[p.ID].landed = false
		w.early.layers[p.Layer].missing++
	}
	m := wire.Header{Kind: wire.Pull, Worker: w.me, Shard: s, Iter: w.replies.next, Part: isAgain}
	return append(out, Effect{Kind: Expect, Shard: s, To: w.plan.Shards[s].Server},
		Effect{Kind: Send, To: w.plan.Shards[s].Server, Msg: m})
}

// keepsGradients notes that a task is computed whose gradients are not pushed now.
func (w *Worker) keepsGradients(t Task) {
	for s := range w.shards {
		if n := len(w.plan.Shards[s].Pieces); t.Keep == Kept {
			w.shards[s].ready, w.shards[s].released = n, n
		}
	}
}

// answered tells the policy when every shard has replied, so that nothing of the iteration counts any more.
func (w *Worker) answered(out []Effect) []Effect {
	if !w.pullsAhead() || w.first < 0 {
		return out
	}
	if w.work.silent--; w.work.silent > 0 {
		return out
	}
	return w.tellWork(WorkEvent{Kind: Answered, Task: w.work.own}, out)
}

// ownClock is the clock from which an owner continues that comes back. Under pulling ahead it is what the shard has
// of it: another worker may push the rest.
func (s *Server) ownClock(clock int64) int64 {
	if s.ahead != nil {
		return 0
	}
	return clock
}
