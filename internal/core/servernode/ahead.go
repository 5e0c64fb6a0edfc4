package servernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// The server's half of pulling ahead (internal/core/ahead.go says what both halves do).

// aheadState is a server's state of it.
type aheadState struct {
	owners [][]int32 // per worker
	live   []int32   // per owner: workers in the run that push its iterations
	lost   bool      // a worker was lost
	apart  bool
}

// makeAhead prepares the server for workers that pull ahead.
func (s *Server) makeAhead(c *core.Ahead) {
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
		sh.slots.most += core.AheadSlots(c.Owners) // after a loss a shard may have pushes of two iterations
		if c.Apart {
			sh.slots.most *= 2
		}
	}
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
		s.shards[m.Shard].peers[m.Worker].aligns = m.Part == core.PullAgain
	}
}

// tryAhead hands a pull to the scheme once its iteration is open, so that the scheme answers at once. The scheme judges what
// the owner has pushed; the worker continues where its pull says, or at v.
func (s *Server) tryAhead(sh *ownShard, w int32, out []core.Effect) []core.Effect {
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

func (s *Server) wantedAhead(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	sh.peers[w].tell()
	sh.stats.Pulls++
	return s.decide(sh, scheme.Event{Kind: scheme.Wanted, Worker: w, Shard: sh.id, Iter: min(sh.peers[w].reached, sh.v())}, out)
}

// answerAhead hands over the pulls that waited for an iteration that is closed now.
func (s *Server) answerAhead(out []core.Effect) []core.Effect {
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

// ownClock is the clock from which an owner continues that comes back. Under pulling ahead it is what the shard has
// of it: another worker may push the rest.
func (s *Server) ownClock(clock int64) int64 {
	if s.ahead != nil {
		return 0
	}
	return clock
}
