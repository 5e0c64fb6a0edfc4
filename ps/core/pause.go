package core

// A pause is a cut under every scheme while training goes on. The driver tells the lead shard's server PauseNow: every
// worker is stopped by its next reply and leaves, as at the end of training. When all have left, nothing is on its way,
// every push was folded or dropped, and the shards agree about which pushes those are. The driver keeps what the
// checkpoint of the end would hold, and new nodes take over where the others stood:
//
//	lead shard                 worker                          driver
//	PauseNow
//	Reply, with Stop ────────► Left to every server; Done ───► all are done: keeps what is saved
//	                           Begin at its clock ◄─────────── NewServer, Resume, Succeed; NewWorker, Succeed
//
// They are made as a run that goes on from the checkpoint makes them. So the run that wrote one and the run that reads it
// do the same from there on, and nothing has to be skipped or told apart after a resume.

// Succeed takes over from the server that had the shards before a pause, after Resume: what it counted, in which buffers
// its versions are, and which of them are held.
func (s *Server) Succeed(old *Server) {
	for _, id := range s.order {
		sh, was := s.shards[id], old.shards[id]
		sh.cur, sh.disk, sh.stats = was.cur, was.disk, old.Shard(id).Stats
		if sh.disk >= 0 {
			sh.refs[sh.disk]++
		}
	}
}

// Succeed takes over what the worker before a pause counted.
func (w *Worker) Succeed(old *Worker) {
	w.LeadMax, w.Started, w.WaitedLast, w.Cached = old.LeadMax, old.Started, old.WaitedLast, old.Cached
}

// Spent says whether the lead shard, which this server has, has used up the budget, if only until some of what it took was
// dropped: then workers were stopped for good.
func (s *Server) Spent() bool { return s.usedUp || s.spent(s.shards[0]) }

// paused stops all workers, each by its next reply of the lead shard; where a shard closes iterations as a whole all of
// them stop at the same one, so that none is closed in two parts. They may have to go far to it, and stop earlier if the
// budget is used up on the way.
func (s *Server) paused() {
	if lead := s.shards[0]; lead != nil && !s.stop {
		s.stopped()
		if s.together {
			s.stopAt = lead.letInto + 1
		}
		s.pausing = true
	}
}
