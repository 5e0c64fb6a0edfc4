// Package inturn says what the schemes that a shard has in turn mean for the nodes: which is current, what a node must know of it, and what
// workers must hold back, keep or wait for. Drivers, plans and both nodes ask it, so that all make the same of a configuration.
package inturn

import (
	"math"
	"slices"

	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// MaySkip says whether a shard with these schemes in turn may answer with an iteration beyond the next one. That is so
// under a scheme whose v may pass workers by and, to be safe, wherever schemes change.
func MaySkip(phases []scheme.Phase) bool {
	return len(phases) > 1 || slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
		e, ok := scheme.All.Lookup(ph.Scheme)
		return !ok || e.Behind
	})
}

// Scheduled says whether the scheme of that name makes workers wait for grants.
func Scheduled(name string) bool {
	e, ok := scheme.All.Lookup(name)
	return ok && e.Scope == scheme.PerServer
}

// Together lists the shards that one scheme instance decides for, shard id among them, ascending. These are all shards
// of the server that have the same scheme, where that scheme schedules the link, and else id alone. schemeOf names the
// scheme of a rule.
func Together(plan *shard.Plan, id int32, schemeOf func(rule int) string) []int32 {
	name := schemeOf(plan.Shards[id].Rule)
	if !Scheduled(name) {
		return []int32{id}
	}
	var ids []int32
	for _, other := range plan.OfServer(plan.Shards[id].Server) {
		if schemeOf(plan.Shards[other].Rule) == name {
			ids = append(ids, other)
		}
	}
	return ids
}

// MustPauseInStep says whether a pause must stop all workers at the same iteration; rules are the phases of each rule, lead is the
// rule of the lead shard. It must where a shard closes iterations as a whole, so that none is closed in two parts. It must
// also where a shard has a smaller bound on the lead than the lead shard: a worker that the lead shard has let into an iteration
// may wait at the other shard for slower workers. If these stopped first and left, that shard would let the worker
// exceed its bound. Bounds are the largest that a scheme ever has: where the bound of dssp or of a Learner is smaller
// at the moment, a pause may let a worker exceed that one, never the largest.
func MustPauseInStep(rules [][]scheme.Phase, lead int) bool {
	loosest, tightest := int64(0), int64(math.MaxInt64)
	for i, phases := range rules {
		for _, ph := range phases {
			e, _ := scheme.All.Lookup(ph.Scheme)
			if e.Whole(ph.Common, ph.Params) {
				return true
			}
			bound, bounded := e.LeadMax(ph.Params)
			if !bounded {
				bound = math.MaxInt64
			}
			tightest = min(tightest, bound)
			if i == lead {
				loosest = max(loosest, bound)
			}
		}
	}
	return tightest < loosest
}

// Behind says whether a shard with these schemes in turn may close iterations that a worker has not pushed. Workers
// that are behind resume where the others are.
func Behind(phases []scheme.Phase) bool {
	return slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
		e, ok := scheme.All.Lookup(ph.Scheme)
		return ok && e.Behind
	})
}

// PhaseAt is the index of a shard's scheme when its workers are at these clocks, and the clocks that this scheme is
// told. For the scheme, a worker past the scheme's end has left: its clock is -1. changes is the number of changes at
// announced clocks; such a scheme has no end yet.
func PhaseAt(phases []scheme.Phase, clocks []int64, changes int64) (k int, told []int64) {
	if phases[0].Await.IsSet() {
		return scheme.Turn(changes, len(phases)), slices.Clone(clocks)
	}
	if clocks == nil {
		return 0, nil // a new run
	}
	v := int64(core.GoneClock)
	for _, c := range clocks {
		if c >= 0 {
			v = min(v, c)
		}
	}
	for phases[k].Until > 0 && v >= phases[k].Until && v < core.GoneClock {
		k++
	}
	told = slices.Clone(clocks)
	for w, c := range told {
		if until := phases[k].Until; until > 0 && c >= until {
			told[w] = -1
		}
	}
	return k, told
}
