package core

import "fluentps/ps/scheme"

// Budget is what ends the run, counted by the lead shard. 0: no limit.
//
// Samples are counted when their push has landed and was not dropped, whether it is folded already or waits for others: a
// scheme that makes a version of many pushes, or holds them back, must not train past the budget meanwhile. Versions can be
// counted exactly: when there are as many, the lead shard folds nothing more.
//
// When a budget is used up no worker is let into another iteration. Each has at most one that it was let into, so that a run
// ends within one iteration per worker of its budget, under every scheme (TestBudgetsHoldUnderRandomOrders).
type Budget struct {
	Samples int64
	Updates int64 // versions
	PerPush int64 // the largest number of samples of one push; at least 1 where Samples is set
}

// halt is how workers are stopped.
type halt struct {
	stop    bool  // they are, by their next replies: for good, or pausing
	usedUp  bool  // because the budget was used up
	pausing bool  // for a pause, and not for good
	stopAt  int64 // by a reply into this iteration or a later one
}

// spent says whether the budget is used up.
func (s *Server) spent(lead *ownShard) bool {
	return s.budget.Samples > 0 && lead.taken >= s.budget.Samples || s.budget.Updates > 0 && lead.version >= s.budget.Updates
}

// nearlySpent says whether the budget may be used up by what workers push that keep copies of the lead shard, before they have to
// ask: each the iteration that it computes, and those that a copy of clock v admits, v up to v + s.
func (s *Server) nearlySpent(lead *ownShard) bool {
	pushes := int64(s.workers) * (lead.bound + 2)
	// Divided: a bound that is close to none, times the samples of a push, is more than an int64 holds.
	if left := s.budget.Samples - lead.taken; s.budget.Samples > 0 && (left-1)/max(1, s.budget.PerPush) < pushes {
		return true
	}
	return s.budget.Updates > 0 && s.budget.Updates-lead.version <= pushes
}

// asks says whether workers must pull the shard before every iteration, though they keep copies.
func (s *Server) asks(sh *ownShard) bool {
	return sh.id == 0 && sh.copies != scheme.Pulled && s.nearlySpent(sh)
}

// full says whether the lead shard has all the versions of the budget. Others take what still comes: a worker that the lead shard
// has not stopped must find its own pushes there.
func (s *Server) full(sh *ownShard) bool {
	return sh.id == 0 && s.budget.Updates > 0 && sh.version >= s.budget.Updates
}

// count takes the samples of a push into account that has landed, or takes them back when it is dropped.
func (sh *ownShard) count(samples int64) { sh.taken += samples }

// stopped ends the run: where the lead shard keeps workers in step, all of them stop at the iteration that
// none of them has been let into yet, and else each at its next reply. A pause that waits for slow workers waits no longer.
func (s *Server) stopped() {
	lead := s.shards[0]
	if lead == nil || s.stop && !s.pausing {
		return
	}
	at := int64(0)
	if lead.exact {
		at = lead.letInto + 1
	}
	if s.pausing {
		at = min(at, s.stopAt)
	}
	s.stop, s.pausing, s.stopAt = true, false, at
}

// stopWhenSpent does so when the budget is used up. It is asked before the lead shard lets a worker into an iteration, and after
// whatever may have used it up.
func (s *Server) stopWhenSpent(sh *ownShard) {
	if sh.id == 0 && (!s.stop || s.pausing) && s.spent(sh) {
		s.usedUp = true
		s.stopped()
	}
}
