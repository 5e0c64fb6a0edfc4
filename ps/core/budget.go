package core

// Budget is what ends the run, counted on the lead shard's commits. 0: no limit.
type Budget struct {
	Samples int64
	Updates int64 // versions
}

// spent says whether the budget is used up.
func (s *Server) spent(lead *ownShard) bool {
	return s.budget.Samples > 0 && lead.samples >= s.budget.Samples || s.budget.Updates > 0 && lead.version >= s.budget.Updates
}

// stopped ends the run: where the lead shard keeps workers in step, all of them stop at the iteration that
// none of them has been let into yet, and else each at its next reply.
func (s *Server) stopped() {
	lead := s.shards[0]
	if s.stop || lead == nil {
		return
	}
	s.stop = true
	if lead.exact {
		s.stopAt = lead.letInto + 1
	}
}
