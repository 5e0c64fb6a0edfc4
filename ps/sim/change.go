package sim

import (
	"math"

	"fluentps/ps/scheme"
)

// limit is what one scheme of a shard promises.
type limit struct {
	bound  int64 // on the lead, -1: none
	whole  bool  // a version is a whole iteration: all that it does not take is late
	copies scheme.Copies
	until  int64 // v at which the next one takes over
	// agrees: the shards of the rule have the same contributors to each iteration, and v is known by Close alone.
	agrees bool
}

// limitsOf lists what the schemes promise that a shard has in turn.
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

// changes follows a shard to its next scheme: when v has come to the change, whoever is behind is taken to it.
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
