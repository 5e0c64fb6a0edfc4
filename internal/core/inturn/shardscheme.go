package inturn

import (
	"fmt"
	"math"

	"fluentps/ps/scheme"
)

// ShardScheme is one shard's scheme, with what the node must know about it.
type ShardScheme struct {
	Scheme scheme.Scheme
	Slots  int   // pushes that may be staged or in flight at once; at least one per worker
	Exact  bool  // all workers must stop at the same iteration (the bound on the lead is 0)
	Lead   int64 // the bound on c - v of a running worker, -1: none
	Shared bool  // one instance decides for all its shards on the server, and grants pushes
	Norms  bool  // the driver gives the norms of each push, to this scheme or to a later one
	Copies scheme.Copies
	Whole  bool  // a version is a whole iteration, so the learning-rate clock counts versions; else accepted pushes / N
	Agrees bool  // it agrees with the other shards of its rule on contributors
	Accord bool  // this scheme or a later one agrees on contributors
	Until  int64 // the clock at which Next takes over; 0: never, or where it is announced
	Awaits bool  // the clock at which Next takes over is announced while training runs (servernode/change.go)
	// Next makes the following scheme, for a shard whose workers are at these clocks; nil where no scheme follows.
	Next func(clocks []int64, start int64) ShardScheme
}

// SlotsMax is the limit on staged pushes that suffices for every scheme: one per worker, and with fold: rank one for
// each iteration that a worker may be ahead. It fails where fold: rank has no finite bound on the lead, or too large a
// one.
func SlotsMax(e scheme.Entry, c scheme.Common, p scheme.Params, workers int) (int, error) {
	if c.Fold != scheme.FoldRank {
		return workers, nil
	}
	lead, ok := e.LeadMax(p)
	if !ok {
		return 0, fmt.Errorf("fold: rank needs a finite bound on the lead and %s has none; use fold: arrival", e.Name)
	}
	if lead >= int64(math.MaxInt32/workers-1) {
		return 0, fmt.Errorf("fold: rank with a lead of %d would stage %d x %d pushes; lower the staleness or use fold: "+
			"arrival", lead, workers, lead+1)
	}
	return workers * int(lead+1), nil
}

// Most is the largest need of a shard's schemes: staged pushes, and accumulators beside the pending sums. It fails on
// an unknown scheme, and where SlotsMax does.
func Most(phases []scheme.Phase, workers int) (slots, means int, err error) {
	for _, ph := range phases {
		e, ok := scheme.All.Lookup(ph.Scheme)
		if !ok {
			return 0, 0, fmt.Errorf("unknown scheme %q", ph.Scheme)
		}
		n, err := SlotsMax(e, ph.Common, ph.Params, workers)
		if err != nil {
			return 0, 0, err
		}
		slots = max(slots, n)
		if e.Means != nil {
			means = max(means, e.Means(ph.Params, workers))
		}
	}
	return slots, means, nil
}

// NewShardSchemes builds the schemes that shard env.Shards[0] has in turn, through the table, so that every driver of
// the nodes makes the same ones. It returns the scheme that is current at env.Clocks. Its Slots are the largest need of
// all of them. env.Memory, where it is not nil, belongs to the current scheme. changes is how often the shard has changed
// its scheme at an announced clock.
func NewShardSchemes(phases []scheme.Phase, env scheme.Env, changes int64) (ShardScheme, error) {
	slots, norms, accord, memory := 0, false, false, env.Memory
	env.Memory = nil
	for k := range phases {
		ss, err := newPhase(phases, k, env) // a later scheme is made only to find out now that it can be made
		if err != nil {
			return ShardScheme{}, err
		}
		if err := checkEnd(phases, k); err != nil {
			return ShardScheme{}, err
		}
		slots, norms, accord = max(slots, ss.Slots), norms || ss.Norms, accord || ss.Agrees
	}
	k, clocks := PhaseAt(phases, env.Clocks, changes)
	env.Clocks, env.Memory = clocks, memory
	first, err := newPhase(phases, k, env)
	first.Slots, first.Norms, first.Accord = slots, norms, accord
	return first, err
}

// checkEnd verifies that the k-th scheme ends if another follows. The ends are clocks that ascend, or all are announced.
func checkEnd(phases []scheme.Phase, k int) error {
	ph, last := phases[k], k == len(phases)-1
	awaits := phases[0].Await.IsSet()
	switch {
	case awaits && (ph.Until > 0 || !last && !ph.Await.IsSet()), !awaits && ph.Await.IsSet():
		return fmt.Errorf("scheme %d of %d (%s) ends in another way than the first; let all wait for stragglers, or none",
			k+1, len(phases), ph.Scheme)
	case awaits:
		return nil
	case last != (ph.Until == 0) || k > 0 && !last && ph.Until <= phases[k-1].Until:
		return fmt.Errorf("scheme %d of %d (%s) ends at iteration %d; every scheme but the last needs an end, after that "+
			"of the scheme before it", k+1, len(phases), ph.Scheme, ph.Until)
	}
	return nil
}

func newPhase(phases []scheme.Phase, k int, env scheme.Env) (ShardScheme, error) {
	ph := phases[k]
	e, ok := scheme.All.Lookup(ph.Scheme)
	if !ok {
		return ShardScheme{}, fmt.Errorf("unknown scheme %q", ph.Scheme)
	}
	slots, err := SlotsMax(e, ph.Common, ph.Params, env.Workers)
	if err != nil {
		return ShardScheme{}, err
	}
	sch, err := e.New(env, ph.Common, ph.Params)
	if err != nil {
		return ShardScheme{}, err
	}
	if env.Memory != nil {
		if err := recall(sch, env.Memory); err != nil {
			return ShardScheme{}, err
		}
	}
	lead, bounded := e.LeadMax(ph.Params)
	if !bounded {
		lead = -1
	}
	ss := ShardScheme{Scheme: sch, Slots: slots, Exact: lead == 0, Lead: lead, Shared: e.Scope == scheme.PerServer,
		Norms: e.WantsNorms(ph.Params), Copies: e.CopiesOf(ph.Params), Whole: e.Whole(ph.Common, ph.Params),
		Until: ph.Until, Awaits: ph.Await.IsSet(), Agrees: e.Agrees != nil && e.Agrees(ph.Params)}
	if ph.Until > 0 || ph.Await.IsSet() {
		ss.Next = func(clocks []int64, start int64) ShardScheme {
			env.Clocks, env.Start, env.Memory = clocks, start, nil
			next, err := newPhase(phases, (k+1)%len(phases), env)
			if err != nil {
				panic(fmt.Sprintf("core: shard %d: %v; the same scheme could be made at the start", env.Shards[0], err))
			}
			return next
		}
	}
	return ss, nil
}

func recall(s scheme.Scheme, memory []byte) error {
	l, learns := s.(scheme.Learning)
	if !learns {
		return fmt.Errorf("the checkpoint has the memory of another scheme, and %v keeps none; resume with the scheme that wrote it", s)
	}
	return l.Recall(memory)
}
