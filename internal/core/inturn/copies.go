package inturn

import (
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// Copy says how a worker keeps its copy of a shard.
type Copy struct {
	Kind  scheme.Copies
	Bound int64   // s
	Share float64 // weight of one push in what its commit adds
}

// CopyOf is the Copy that a scheme with these keys asks for.
func CopyOf(name string, c scheme.Common, p scheme.Params, workers int) Copy {
	e, ok := scheme.All.Lookup(name)
	if !ok || e.CopiesOf(p) == scheme.Pulled {
		return Copy{}
	}
	s, _ := e.LeadMax(p)
	return Copy{Kind: e.CopiesOf(p), Bound: s, Share: c.Share(workers)}
}

// CopyBytes is the memory that a worker needs for its copies beside the parameters: for each published shard the pushes
// that it keeps, and one version that lands.
func CopyBytes(plan *shard.Plan, copyOf func(rule int) Copy) int64 {
	var n int64
	for i := range plan.Shards {
		if c := copyOf(plan.Shards[i].Rule); c.Kind == scheme.Published {
			n += plan.Shards[i].Bytes() * (c.Bound + 2)
		}
	}
	return n
}
