package scheme

import (
	"fmt"
	"math"
)

// SoftsyncParams are the keys of a softsync rule.
type SoftsyncParams struct {
	Q         int64   `yaml:"q" min:"1" doc:"pushes that make a version, of any workers and iterations; 1 commits each push, as asp does"`
	Staleness int64   `yaml:"staleness" min:"-1" doc:"s, the bound on c - v in iterations as in ssp; -1 is none, as asp"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"with a bound: when a delayed pull is answered, as in ssp"`
}

// Check names the key, the value, the limit and the way out.
func (p *SoftsyncParams) Check() error {
	switch {
	case p.Q < 1:
		return fmt.Errorf("q: %d is below 1, a version for each push; set the number of pushes that make a version", p.Q)
	case p.Q > math.MaxInt32:
		return fmt.Errorf("q: %d is above %d, more pushes than any run has workers for; lower it", p.Q, math.MaxInt32)
	}
	if err := checkBoundOrNone(p.Staleness); err != nil {
		return err
	}
	return p.Release.check()
}

var softsync = Entry{
	Name:     "softsync",
	Rule:     "a pull is answered at once, or as in ssp where staleness is set; any q pushes are one commit of their mean",
	Paper:    "soft synchronization as told in DL4J's guide to distributed training, part 1: W -= 1/q * the sum of any q updates; without its weights by staleness",
	Evidence: "P",
	Use:      "between asp (q: 1) and synchronous training (q: N): fewer and steadier updates than asp, and nobody waits",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Weight:   "1/q",
	Params:   func() Params { return &SoftsyncParams{Q: 2, Staleness: -1, Release: ReleaseSoft} },
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*SoftsyncParams).Staleness
		return max(s, 0), s >= 0
	},
	Whole:      func(Common, Params) bool { return false },
	NeverWaits: func(p Params) bool { return p.(*SoftsyncParams).Staleness < 0 },
	New:        newSoftsync,
}

func newSoftsync(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*SoftsyncParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("softsync: %w", err)
	}
	r := rule{name: "softsync", release: p.Release, perPush: true, several: p.Q}
	return newGate(env, common, FoldArrival, r.limited(p.Staleness))
}

// commitSeveral commits the pushes that are pending at once, each with the weight of one.
func (g *gate) commitSeveral(w int32, iter int64, out []Decision) []Decision {
	return g.commit(w, iter, float64(g.pendingPushes)*g.weight, out)
}
