package servernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// A worker may leave and come back, and each time begins another life; the first is 0. What it pushed counts once: a
// server remembers how far each worker got at each shard, and never lets it continue before that. The driver must see
// to it that nothing else of an earlier life, no push, pull or piece, reaches a server after the next Joined, and that
// no reply to an earlier life reaches the worker. A Left or Joined that is out of date is ignored. Under plain MPI a
// lost rank ends the job, so only the simulator and tests bring a worker back.

// members are the workers of a run as a server knows them.
type members struct {
	left         []bool
	present      int                   // workers that have not left
	pendingLeft  map[int32]wire.Header // Left of each worker that left while some of its pushes had not landed
	life         []int64               // per worker: how often it has come back
	endedLives   int64                 // lives that have ended, over all workers
	firstIterMax int64                 // the largest iteration at which a worker starts; 0 without a checkpoint to resume from
	done         bool                  // all have left, and nothing is in flight
}

func newMembers(workers int) members {
	return members{left: make([]bool, workers), present: workers, pendingLeft: map[int32]wire.Header{}, life: make([]int64, workers)}
}

// setLife records the number of a worker's life.
func (m *members) setLife(w int32, life int64) {
	m.endedLives += life - m.life[w]
	m.life[w] = life
}

// workerLeft handles the end of a worker's life. The server may never have heard of that life.
func (s *Server) workerLeft(m wire.Header, out []core.Effect) []core.Effect {
	w, life := m.Worker, m.Clock
	if life < s.members.life[w] || life == s.members.life[w] && s.members.left[w] || !s.members.left[w] && s.deferLeft(m) {
		return out
	}
	s.members.setLife(w, life)
	s.noteLoss(&m)
	if !s.members.left[w] {
		out = s.removeWorker(w, out)
	}
	if s.members.present == 0 {
		out = s.announceAllLeft(out)
	}
	return out
}

// removeWorker removes a worker from all shards of the server.
func (s *Server) removeWorker(w int32, out []core.Effect) []core.Effect {
	s.members.left[w] = true
	s.members.present--
	s.members.endedLives++
	s.watch.detector.Left(w)
	if lead := s.shards[0]; lead != nil {
		lead.tally.setSpeed(w, 0)
	}
	owners := s.ownersOf(w, -1)
	for _, id := range s.owned {
		for _, j := range owners {
			s.removeOwner(s.shards[id], j)
		}
		out = s.removeFromShard(s.shards[id], w, out)
	}
	for _, id := range s.owned { // one scheme may decide for several shards: all of these are up to date before it hears of the worker
		sh := s.shards[id]
		for _, j := range owners {
			out = s.changeScheme(sh, s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: j, Shard: id}, out))
		}
	}
	for _, id := range s.owned { // a worker that has left reads nothing any more
		out = s.endNearReply(s.shards[id], w, out)
	}
	return s.countVotes(out)
}

// removeOwner removes from a shard the iterations of a worker that nobody pushes any more.
func (s *Server) removeOwner(sh *ownShard, owner int32) {
	sh.setClock(owner, core.GoneClock)
	sh.forgetAtCut(owner)
	sh.forgetParts(owner)
}

// removeFromShard removes a worker from one shard, before any scheme is told.
func (s *Server) removeFromShard(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	k := &sh.peers[w]
	k.leave()
	if p := k.landing; p != nil { // the worker died in the middle of a push
		k.landing = nil
		sh.slots.freeSlot(p.slot)
		out = append(out, core.Effect{Kind: core.Unstage, To: w, Shard: sh.id, Slot: p.slot})
	}
	return s.unsubscribe(sh, w, out)
}

// workerJoined takes a worker back, and answers its pulls of all shards. If the server has not noticed that the worker
// had left, it removes the worker first.
func (s *Server) workerJoined(w int32, life, clock int64, out []core.Effect) []core.Effect {
	if life <= s.members.life[w] {
		return out
	}
	if !s.members.left[w] {
		s.noteLoss(&wire.Header{})
		out = s.removeWorker(w, out)
	}
	out = s.forgetReplies(w, out)
	s.members.setLife(w, life)
	s.members.left[w], s.members.done = false, false
	s.members.present++
	s.members.endedLives--
	owners := s.ownersOf(w, 1)
	for _, id := range s.owned {
		for _, j := range owners {
			s.shards[id].rejoin(j, s.ownClock(s.locally.ClockOf(id, clock)))
		}
	}
	for _, id := range s.owned { // one scheme may decide for several shards: all of these are up to date before it hears of the worker
		sh := s.shards[id]
		for _, j := range owners {
			out = s.changeScheme(sh, s.decide(sh, scheme.Event{Kind: scheme.Joined, Worker: j, Shard: id, Iter: sh.peers[j].reached}, out))
		}
	}
	for _, id := range s.owned {
		sh := s.shards[id]
		if s.ahead != nil {
			sh.peers[w].pullIter = clock
			out = s.wantedAhead(sh, w, out)
			continue
		}
		sh.peers[w].ask(sh.peers[w].reached)
		out = s.tryPull(sh, w, out)
	}
	return out
}

// rejoin counts a worker again among those whose smallest clock is v: at v, or at its own clock where that is larger.
// Where nobody is in the run, v is what the scheme knows of all that was pushed.
func (sh *ownShard) rejoin(w int32, clock int64) {
	k := &sh.peers[w]
	if clock > k.reached {
		sh.stats.Skipped += clock - k.reached
		k.reached = clock
	}
	v := sh.v()
	if sh.low == core.GoneClock && !sh.agrees {
		v = max(sh.closed, min(reachedMax(sh.peers), sh.cut.at))
	}
	k.clock = max(v, k.reached)
	sh.lowest()
	k.feed = feed{} // versions in flight are lost with the previous life
}

// finishIfDone ends the server when all workers have left and no reply is in flight.
func (s *Server) finishIfDone(out []core.Effect) []core.Effect {
	if s.members.done || s.members.present > 0 || s.holdsBack() {
		return out
	}
	for _, id := range s.owned {
		if !s.heardAll(s.shards[id]) {
			return out
		}
		for i := range s.shards[id].peers {
			if s.shards[id].peers[i].replyInFlight() {
				return out
			}
		}
	}
	s.members.done = true
	return append(out, core.Effect{Kind: core.Done})
}
