package sim

import (
	"math"

	"fluentps/ps/scheme"
)

// limit is the promise of one scheme of a shard.
type limit struct {
	bound  int64 // on the lead, -1: none
	whole  bool  // a version is a whole iteration: a push that is not in it is late
	copies scheme.Copies
	until  int64 // v at which the next scheme takes over
	// agrees: the shards of the rule have the same contributors to each iteration, and only Close advances v.
	agrees bool
}

// limitsOf lists the promises of the schemes that a shard has in turn.
func limitsOf(phases []scheme.Phase) (limits []limit) {
	for _, ph := range phases {
		e, _ := scheme.Lookup(ph.Scheme)
		l := limit{bound: -1, whole: e.Whole(ph.Common, ph.Params), copies: e.CopiesOf(ph.Params), until: ph.Until}
		if lead, bounded := e.LeadMax(ph.Params); bounded {
			l.bound = lead
		}
		l.agrees = e.Agrees != nil && e.Agrees(ph.Params)
		if l.until == 0 {
			l.until = math.MaxInt64
		}
		limits = append(limits, l)
	}
	return limits
}

// changes switches a shard to its next scheme when v reaches the change. The clocks of workers behind the change are set to it.
func (s *shardCheck) changes() {
	for s.low != math.MaxInt64 && s.v() >= s.until {
		for w := range s.of {
			s.of[w].clock = max(s.of[w].clock, s.until)
		}
		s.closed = max(s.closed, s.until)
		s.limit, s.then = s.then[0], s.then[1:]
		s.lowest()
	}
}
