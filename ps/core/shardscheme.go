package core

import (
	"fmt"
	"math"
	"math/rand/v2"

	"fluentps/ps/scheme"
)

// ShardScheme is one shard's scheme with what the node must know of it.
type ShardScheme struct {
	Scheme scheme.Scheme
	Slots  int   // pushes that may be staged or on their way at once; at least one per worker
	Exact  bool  // all workers must stop at the same iteration (lead bound 0)
	Lead   int64 // the bound on c - v of a running worker, -1: none
	Shared bool  // the instance decides for all its shards on the server, and grants pushes
	Norms  bool  // the driver gives the norms of each push
	Copies scheme.Copies
	Whole  bool // a version is a whole iteration, so versions are the learning-rate clock; else accepted pushes / N
}

// SlotsMax is the limit on staged pushes that always admits what the scheme needs: one per worker, and with
// fold: rank one for each iteration that a worker may be ahead.
func SlotsMax(e scheme.Entry, c scheme.Common, p scheme.Params, workers int) (int, error) {
	if c.Fold != scheme.FoldRank {
		return workers, nil
	}
	lead, ok := e.LeadMax(p)
	if !ok {
		return 0, fmt.Errorf("fold: rank needs a finite bound on the lead and %s has none; use fold: arrival", e.Name)
	}
	if lead >= int64(math.MaxInt32/workers-1) {
		return 0, fmt.Errorf("fold: rank with a lead of %d would stage %d x %d pushes; lower the staleness or use fold: arrival", lead, workers, lead+1)
	}
	return workers * int(lead+1), nil
}

// schemeStream keeps the generators of shards apart from those of workers.
const schemeStream = 0x5e44e400000000

// NewShardScheme builds the scheme of shard env.Shards[0] through the table, with a generator seeded by (seed, shard),
// so that every driver of the nodes makes the same one. env.Rand is filled in.
func NewShardScheme(name string, c scheme.Common, p scheme.Params, env scheme.Env, seed uint64) (ShardScheme, error) {
	e, ok := scheme.Lookup(name)
	if !ok {
		return ShardScheme{}, fmt.Errorf("scheme %q is not built in", name)
	}
	slots, err := SlotsMax(e, c, p, env.Workers)
	if err != nil {
		return ShardScheme{}, err
	}
	env.Rand = rand.NewPCG(seed, schemeStream+uint64(env.Shards[0]))
	sch, err := e.New(env, c, p)
	if err != nil {
		return ShardScheme{}, err
	}
	lead, bounded := e.LeadMax(p)
	if !bounded {
		lead = -1
	}
	return ShardScheme{Scheme: sch, Slots: slots, Exact: lead == 0, Lead: lead, Shared: e.Scope == scheme.PerServer, Norms: e.WantsNorms(p), Copies: e.CopiesOf(p), Whole: e.Whole(c, p)}, nil
}
