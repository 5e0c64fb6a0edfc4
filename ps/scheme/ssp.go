package scheme

import (
	"errors"
	"fmt"

	"fluentps/internal/policy/terms"
)

// SSPParams are the keys of an ssp rule.
type SSPParams struct {
	Staleness int64   `yaml:"staleness" min:"0" idle:"lead" doc:"s, the bound on c - v in iterations; 0 is bsp"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"when a delayed pull is answered: soft at the next step of v, lazy when all workers have finished the iteration that this worker has just pushed, block as lazy, together with all pulls for the same iteration that arrive meanwhile"`
	Cache     bool    `yaml:"cache" doc:"a worker keeps its copy, with its own updates added, and pulls only when the clock of that copy is below c - s: up to s of s+1 iterations need no pull; needs push: delta"`
}

// Check names the key, the value, the limit and the way out.
func (p *SSPParams) Check() error {
	if p.Staleness < 0 {
		return fmt.Errorf("staleness: %d is below 0, the bound at which the slowest worker still runs; set 0 (as bsp) or "+
			"more, or set scheme: asp for no bound", p.Staleness)
	}
	if p.Staleness > stalenessMax {
		return fmt.Errorf("staleness: %d is above %d, more iterations than any run has; set scheme: asp for no bound", p.Staleness, stalenessMax)
	}
	return p.Release.check()
}

// stalenessMax keeps c - v far from the largest int64, which stands for no bound.
const stalenessMax = 1 << 40

var ssp = Entry{
	Name:  "ssp",
	Short: "a worker leads the slowest by at most `staleness` iterations",
	Rule:  "a pull waits until the worker leads the slowest by at most s iterations (c - v <= s); one commit per push",
	Paper: "bound: SSP (Ho et al., NIPS 2013) as in Petuum Bösen's code; soft, lazy, block: FluentPS (Yao, Wu, " +
		"Wang, IEEE Cluster 2019), server algorithm; its authors push updates: examples/fashion-softmax-fluentps.yaml",
	Evidence: "C",
	Use:      "workers of uneven speed, when staleness must have a bound; release: lazy where delayed pulls are expensive",
	Scope:    PerShard,
	Fold:     FoldArrival,
	// Bösen's Inc adds a client's update unscaled [C].
	Weight:  DeltaWhole,
	Params:  func() Params { return &SSPParams{Staleness: 3, Release: ReleaseSoft} },
	Copies:  copiesOfSSP,
	Bound:   "staleness",
	LeadMax: func(p Params) (int64, bool) { return p.(*SSPParams).Staleness, true },
	Whole:   func(c Common, _ Params) bool { return c.Fold == FoldRank },
	Says:    Says{Papers: terms.Cite("ho2013ssp", "yao2019fluentps")},
	New:     newSSP,
}

func copiesOfSSP(p Params) Copies {
	if p.(*SSPParams).Cache {
		return Cached
	}
	return Pulled
}

func newSSP(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*SSPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("ssp: %w", err)
	}
	if p.Cache && common.Fold == FoldRank {
		return nil, errors.New("ssp: cache: a reply must contain all pushes of its worker, and fold: rank delays pushes; use fold: arrival")
	}
	r := rule{name: "ssp", limit: fixed{p.Staleness}, release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r)
}
