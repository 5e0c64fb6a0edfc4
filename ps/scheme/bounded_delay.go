package scheme

import (
	"fmt"

	"fluentps/internal/policy/terms"
)

// BoundedDelayParams are the keys of a bounded_delay rule.
type BoundedDelayParams struct {
	Tau     int64   `yaml:"tau" min:"0" idle:"lead" doc:"the delay in iterations: iteration t starts once all iterations before t - tau are finished; 0 is sequential, as bsp"`
	Release Release `yaml:"release" values:"soft,lazy,block" doc:"when a delayed pull is answered; soft is Algorithm 3, lazy and block are as in ssp"`
}

// Check names the key, the value, the limit and the way out.
func (p *BoundedDelayParams) Check() error {
	if p.Tau < 0 {
		return fmt.Errorf("tau: %d is below 0, the delay at which each iteration waits for all before it; set 0 (as bsp) "+
			"or more, or set scheme: asp for no bound", p.Tau)
	}
	if p.Tau > stalenessMax {
		return fmt.Errorf("tau: %d is above %d, more iterations than any run has; set scheme: asp for no bound", p.Tau, stalenessMax)
	}
	return p.Release.check()
}

// boundedDelay is ssp under the name and in the terms of another paper. Task t of a worker with clock c = t waits for
// the tasks before t - tau, and these are finished iff v >= c - tau.
var boundedDelay = Entry{
	Name:     "bounded_delay",
	Short:    "ssp in the terms of the Parameter Server paper: at most `tau` iterations ahead",
	Rule:     "a pull for iteration t waits until every worker has pushed all iterations before t - tau (c - v <= tau); one commit per push",
	Paper:    "Parameter Server (Li et al., OSDI 2014), bounded delay and Algorithm 3, delayed block proximal gradient; the same gate as ssp",
	Evidence: "P",
	Use:      "as ssp with staleness: tau; for experiments described in the terms of that paper",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Params:   func() Params { return &BoundedDelayParams{Tau: 8, Release: ReleaseSoft} },
	Bound:    "tau",
	LeadMax:  func(p Params) (int64, bool) { return p.(*BoundedDelayParams).Tau, true },
	Whole:    func(c Common, _ Params) bool { return c.Fold == FoldRank },
	Says:     Says{Papers: terms.Cite("li2014scaling")},
	New:      newBoundedDelay,
}

func newBoundedDelay(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*BoundedDelayParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("bounded_delay: %w", err)
	}
	r := rule{name: "bounded_delay", limit: fixed{p.Tau}, release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r)
}
