package check

import (
	"math"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

// limit is the promise of one scheme of a shard.
type limit struct {
	bound  int64 // on the lead, -1: none
	whole  bool  // a version is a whole iteration: a push that is not in it is late
	copies scheme.Copies
	until  int64 // v at which the next scheme takes over
	awaits bool  // until is announced while the run goes on
	waited bool  // the first scheme of the rule awaits an end
	again  bool  // the first scheme of the rule follows the last one
	// agrees: the shards of the rule have the same contributors to each iteration, and only Close advances v.
	agrees bool
}

// limitsOf lists the promises of the schemes that a shard has in turn.
func limitsOf(phases []scheme.Phase) (limits []limit) {
	for _, ph := range phases {
		e, _ := scheme.All.Lookup(ph.Scheme)
		l := limit{bound: -1, whole: e.Whole(ph.Common, ph.Params), copies: e.CopiesOf(ph.Params), until: ph.Until,
			awaits: ph.Await.IsSet(), waited: phases[0].Await.IsSet(), again: phases[len(phases)-1].Await.IsSet()}
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
	for s.low != math.MaxInt64 && s.v() >= s.now.until {
		for w := range s.of {
			s.of[w].clock = max(s.of[w].clock, s.now.until)
		}
		s.closed = max(s.closed, s.now.until)
		if s.now.awaits {
			s.changed++
		}
		ended := s.now
		if s.now, s.then = s.then[0], s.then[1:]; ended.again {
			ended.until = math.MaxInt64
			s.then = append(slices.Clone(s.then), ended)
		}
		s.lowest()
		s.awaitCut()
	}
}

// awaitCut gives the current scheme of a shard the end that was announced, if one was.
func (s *shardCheck) awaitCut() {
	if s.now.awaits && s.now.until == math.MaxInt64 && len(s.cuts) > 0 {
		s.now.until, s.cuts = s.cuts[0], s.cuts[1:]
	}
}

// announces checks the replies of the lead shard that announce a change behind their iteration. No worker was let into that iteration
// before, and each reply into it says so. From then on all shards whose schemes wait have the same end.
func (c *checker) announces(m wire.Header) {
	flagged := m.Flags&wire.Change != 0
	switch {
	case flagged && m.Iter > c.announced && m.Iter <= c.letInto:
		c.fail("the change: worker %d is the first to hear of a change behind iteration %d, but a worker was let into %d "+
			"before", m.Worker, m.Iter, c.letInto)
	case flagged && m.Iter > c.announced:
		c.announced = m.Iter
		for i := range c.shards {
			s := &c.shards[i]
			s.cuts = append(s.cuts, m.Iter+1)
			s.awaitCut()
		}
	case flagged != (m.Iter == c.announced):
		c.fail("the change: worker %d is let into iteration %d, marked %v, but the change is announced behind iteration %d",
			m.Worker, m.Iter, flagged, c.announced)
	}
	c.letInto = max(c.letInto, m.Iter)
}

// changesCounted checks that a shard has changed its scheme as often as its workers have reached an announced change.
func (c *checker) changesCounted(id int32) {
	if k, n := &c.shards[id], c.s.Shard(id).Changes; k.now.waited && n != k.changed {
		c.fail("the change: shard %d has changed its scheme %d times, but its workers have reached %d changes", id, n, k.changed)
	}
}
