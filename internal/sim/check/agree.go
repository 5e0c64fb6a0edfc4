package check

import (
	"slices"

	"fluentps/internal/core"
)

// setKey identifies an iteration whose contributors the shards of a rule agree on.
type setKey struct {
	lead int32 // the shard that decides
	iter int64
}

// contributors are the workers whose pushes make up an iteration.
type contributors struct {
	workers []int32 // at the leading shard, ascending
	shards  int     // other shards of the rule that have closed the iteration
}

// v is the smallest clock of the workers in the run. It is larger if the scheme closes iterations without the slow workers.
func (s *shardCheck) v() int64 {
	if s.now.agrees {
		return s.closed
	}
	return max(s.low, s.closed)
}

// closes checks that a shard closes iterations in order, after the leading shard, and with its contributors. Only those that died
// before their push arrived may be missing.
func (c *checker) closes(e *core.Effect) {
	s := &c.shards[e.Shard]
	if e.Iter < s.closed {
		c.fail("contributors: shard %d closes iteration %d, and %d are closed", e.Shard, e.Iter, s.closed)
	}
	slices.Sort(s.set)
	key := setKey{s.lead, e.Iter}
	k := c.sets[key]
	switch {
	case s.lead == e.Shard && s.followers == 0:
	case s.lead == e.Shard:
		c.sets[key] = &contributors{workers: slices.Clone(s.set)}
	case k == nil && len(s.set) > 0:
		c.fail("contributors: shard %d closes iteration %d with pushes of workers %v before shard %d, which leads", e.Shard,
			e.Iter, s.set, s.lead)
	case k != nil:
		c.agree(e, k.workers, s.set)
		if k.shards++; k.shards == c.shards[s.lead].followers {
			delete(c.sets, key)
		}
	}
	s.set = s.set[:0]
	s.closed = e.Iter + 1
	s.changes()
}

func (c *checker) agree(e *core.Effect, want, got []int32) {
	for _, w := range got {
		if _, ok := slices.BinarySearch(want, w); !ok {
			c.fail("contributors: shard %d has worker %d in iteration %d, and the leading shard has %v", e.Shard, w, e.Iter, want)
		}
	}
	for _, w := range want {
		if _, ok := slices.BinarySearch(got, w); !ok && !c.s.IsDead(w) && c.s.Life(w) == 0 {
			c.fail("contributors: shard %d has workers %v in iteration %d, and not worker %d, which has not died and is "+
				"among the leading shard's %v", e.Shard, got, e.Iter, w, want)
		}
	}
}
