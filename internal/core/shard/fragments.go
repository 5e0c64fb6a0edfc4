package shard

import "fmt"

// Fragments are the shards of a run that exchanges one fragment of the parameters after the other.
type Fragments struct {
	of []int64 // by shard: its fragment
	n  int64
}

// NewFragments deals the shards to n fragments in order, so that each has about as many bytes. Fragment 0 has the lead shard. It fails
// if there are fewer shards than fragments.
func NewFragments(plan *Plan, n int64) (*Fragments, error) {
	if int64(len(plan.Shards)) < n {
		return nil, fmt.Errorf("local.fragments is %d, but there are only %d shards, and a shard is in one fragment; "+
			"lower it, or cut more shards with shards.slice", n, len(plan.Shards))
	}
	var all, before int64
	for i := range plan.Shards {
		all += plan.Shards[i].Bytes()
	}
	f := &Fragments{of: make([]int64, len(plan.Shards)), n: n}
	last := int64(-1)
	for i := range plan.Shards {
		left := int64(len(plan.Shards) - i) // shards, this one too
		at := min(n-1, before*n/max(1, all))
		at = max(min(at, last+1), last, n-left) // no fragment is left out
		f.of[i], last = at, at
		before += plan.Shards[i].Bytes()
	}
	return f, nil
}

// Due says whether a shard is exchanged in an iteration.
func (f *Fragments) Due(id int32, iter int64) bool { return iter%f.n == f.of[id] }

// Clock is the number of exchanges that a shard has had before an iteration.
func (f *Fragments) Clock(id int32, iter int64) int64 { return (iter + f.n - 1 - f.of[id]) / f.n }

// Of is the fragment of a shard.
func (f *Fragments) Of(id int32) int64 { return f.of[id] }

// N is the number of fragments.
func (f *Fragments) N() int64 { return f.n }
