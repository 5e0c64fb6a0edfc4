package core

import (
	"math"

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

// Succeed takes over the counters of the worker before a pause.
func (w *Worker) Succeed(old *Worker) {
	w.Counts = old.Counts
}

// Spent says whether the lead shard, which this server owns, has used up the budget. It stays true if some of the
// counted pushes were dropped later: the workers were stopped for good.
func (s *Server) Spent() bool { return s.halt.budgetSpent || s.isSpent(s.shards[0]) }

// MustPauseInStep says whether a pause must stop all workers at the same iteration; rules are the phases of each rule, lead is the
// rule of the lead shard. It must where a shard closes iterations as a whole, so that none is closed in two parts. It must
// also where a shard has a smaller bound on the lead than the lead shard: a worker that the lead shard has let into an iteration
// may wait at the other shard for slower workers. If these stopped first and left, that shard would let the worker
// exceed its bound. Bounds are the largest that a scheme ever has: where the bound of dssp or of a Learner is smaller
// at the moment, a pause may let a worker exceed that one, never the largest.
func MustPauseInStep(rules [][]scheme.Phase, lead int) bool {
	loosest, tightest := int64(0), int64(math.MaxInt64)
	for i, phases := range rules {
		for _, ph := range phases {
			e, _ := scheme.All.Lookup(ph.Scheme)
			if e.Whole(ph.Common, ph.Params) {
				return true
			}
			bound, bounded := e.LeadMax(ph.Params)
			if !bounded {
				bound = math.MaxInt64
			}
			tightest = min(tightest, bound)
			if i == lead {
				loosest = max(loosest, bound)
			}
		}
	}
	return tightest < loosest
}

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
