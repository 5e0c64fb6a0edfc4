package servernode

import (
	"fluentps/ps/scheme"
)

// A pause makes a cut while training runs, under every scheme. The driver tells the lead shard's server PauseNow. Every
// worker is stopped by its next reply and leaves, as at the end of training. When all have left, nothing is in flight,
// every push was folded or dropped, and the shards agree on which pushes were folded. The driver keeps what the
// checkpoint of the end would hold, and new nodes continue where the old ones stood:
//
//	lead shard                 worker                          driver
//	PauseNow
//	Reply, with Stop ────────► Left to every server; Done ───► all are done: keeps what is saved
//	                           Begin at its clock ◄─────────── NewServer, Resume, Succeed; NewWorker, Succeed
//
// The new nodes are made exactly as a resumed run makes them. So the run that wrote a checkpoint and a run that resumes
// from it do the same from there on, and no iteration has to be skipped after a resume.

// Succeed takes over from the server that had the shards before a pause: its counters, the buffers of its versions, and
// which of these are held. It must be called after Resume.
func (s *Server) Succeed(old *Server) {
	for _, id := range s.owned {
		sh, was := s.shards[id], old.shards[id]
		sh.versions.cur, sh.versions.diskBuf, sh.stats = was.versions.cur, was.versions.diskBuf, old.Shard(id).Stats
		if sh.versions.diskBuf >= 0 {
			sh.versions.refs[sh.versions.diskBuf]++
		}
	}
}

// Spent says whether the lead shard, which this server owns, has used up the budget. It stays true if some of the
// counted pushes were dropped later: the workers were stopped for good.
func (s *Server) Spent() bool { return s.halt.budgetSpent || s.isSpent(s.shards[0]) }

// pauseWorkers stops all workers, each by its next reply of the lead shard, or all at the same iteration (MustPauseInStep). That
// iteration may be far ahead; the workers stop earlier if the budget is used up on the way.
func (s *Server) pauseWorkers() {
	if lead := s.shards[0]; lead != nil && !s.halt.stopping {
		s.stopWorkers()
		if s.together {
			s.halt.stopAt = lead.letInto + 1
		}
		s.halt.pausing = true
	}
}

// Budget ends the run; the lead shard counts it. 0: no limit.
//
// Samples are counted when their push has landed and was not dropped, folded or not. A scheme may make one version of
// many pushes, or hold pushes back, and must not train past the budget meanwhile. Versions are counted exactly: when
// the lead shard has as many as the budget says, it folds nothing more.
//
// When a budget is used up, no worker may start another iteration. Each worker has at most one iteration that it was
// already let into. So a run ends within one iteration per worker of its budget, under every scheme
// (TestBudgetsHoldUnderRandomOrders).
type Budget struct {
	Samples int64
	Updates int64 // versions
	PerPush int64 // the largest number of samples of one push; at least 1 where Samples is set
}

// halt says how workers are being stopped.
type halt struct {
	stopping    bool  // workers are told to stop by their next replies: for good, or for a pause
	budgetSpent bool  // they are stopped because the budget is used up
	pausing     bool  // they are stopped for a pause
	stopAt      int64 // a reply into this iteration or a later one says stop
}

// Spent says whether so many samples and versions of the lead shard use up the budget.
func (b Budget) Spent(samples, versions int64) bool {
	return b.Samples > 0 && samples >= b.Samples || b.Updates > 0 && versions >= b.Updates
}

// isSpent says whether the budget is used up.
func (s *Server) isSpent(lead *ownShard) bool {
	return s.budget.Spent(lead.samplesTaken, lead.versions.version)
}

// isNearlySpent says whether the pushes of workers that keep copies of the lead shard may use up the budget before
// these workers have to pull. Each may push the iteration that it computes, and the iterations that a copy of clock v
// admits, v up to v + s.
func (s *Server) isNearlySpent(lead *ownShard) bool {
	pushes := int64(s.workers) * (lead.leadMax + 2)
	// Divided, because a very large bound times the samples of a push overflows an int64.
	if left := s.budget.Samples - lead.samplesTaken; s.budget.Samples > 0 && (left-1)/max(1, s.budget.PerPush) < pushes {
		return true
	}
	return s.budget.Updates > 0 && s.budget.Updates-lead.versions.version <= pushes
}

// mustPull says whether workers must pull the shard before every iteration, though they keep copies.
func (s *Server) mustPull(sh *ownShard) bool {
	return sh.id == 0 && sh.copies != scheme.Pulled && s.isNearlySpent(sh)
}

// hasAllUpdates says whether the lead shard has all versions of the budget. Other shards keep folding: a worker that
// the lead shard has not stopped must find its own pushes there.
func (s *Server) hasAllUpdates(sh *ownShard) bool {
	return sh.id == 0 && s.budget.Updates > 0 && sh.versions.version >= s.budget.Updates
}

// count adds the samples of a push that has landed; a push that is dropped is counted back.
func (sh *ownShard) count(samples int64) { sh.samplesTaken += samples }

// stopWorkers ends the run. Where the lead shard keeps workers in step, all of them stop at the first iteration that
// none of them was let into. Elsewhere each worker stops at its next reply. A pause that is still waiting for slow
// workers ends at once.
func (s *Server) stopWorkers() {
	lead := s.shards[0]
	if lead == nil || s.halt.stopping && !s.halt.pausing {
		return
	}
	at := int64(0)
	if lead.exact {
		at = lead.letInto + 1
	}
	if s.halt.pausing {
		at = min(at, s.halt.stopAt)
	}
	s.halt.stopping, s.halt.pausing, s.halt.stopAt = true, false, at
}

// stopWhenSpent stops the workers when the budget is used up. It is called before the lead shard lets a worker into an
// iteration, and after each decision, since any may have used the budget up.
func (s *Server) stopWhenSpent(sh *ownShard) {
	if sh.id == 0 && (!s.halt.stopping || s.halt.pausing) && s.isSpent(sh) {
		s.halt.budgetSpent = true
		s.stopWorkers()
	}
}
