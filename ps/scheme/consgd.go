package scheme

import (
	"fmt"
	"math"

	"fluentps/internal/policy/terms"
)

// ConSGDParams are the keys of a consgd rule.
type ConSGDParams struct {
	Staleness int64   `yaml:"staleness" min:"-1" idle:"lead" doc:"s, the bound on c - v in iterations as in ssp; 0 is as bsp, -1 is no bound, as asp"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"with a bound: when a delayed pull is answered, as in ssp"`
}

// Check names the key, the value, the limit and the way out.
func (p *ConSGDParams) Check() error {
	if err := checkBoundOrNone(p.Staleness); err != nil {
		return err
	}
	return p.Release.check()
}

// checkBoundOrNone checks a staleness for which -1 means no bound.
func checkBoundOrNone(s int64) error {
	switch {
	case s < -1:
		return fmt.Errorf("staleness: %d is below 0; set a bound of 0 or more, or -1 for none", s)
	case s > stalenessMax:
		return fmt.Errorf("staleness: %d is above %d, more iterations than any run has; set -1 for no bound", s, int64(stalenessMax))
	}
	return nil
}

// limited sets the limit of a rule from a staleness; -1 is no bound.
func (r rule) limited(s int64) rule {
	if s < 0 {
		s, r.unbounded = math.MaxInt64, true
	}
	r.limit = fixed{s}
	return r
}

var consgd = Entry{
	Name:  "consgd",
	Short: "workers push local steps, and the server adds 1/N of each",
	Rule: "pulls as in ssp; a push is the delta of a local step at a constant rate, and is added with the " +
		"constant weight 1/N; one commit per push",
	Paper:    "ConSGD (Jiang, Cui, Zhang, Yu, SIGMOD 2017) as described by its abstract and by two implementations of others; 1/N recalled",
	Evidence: "R",
	Use:      "workers of uneven speed that step with their own optimizer: no update can move the parameters by more than 1/N of itself",
	Scope:    PerShard,
	Push:     "delta",
	Fold:     FoldArrival,
	Params:   func() Params { return &ConSGDParams{Staleness: 3, Release: ReleaseSoft} },
	Bound:    "staleness",
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*ConSGDParams).Staleness
		return max(s, 0), s >= 0
	},
	Whole:      func(c Common, _ Params) bool { return c.Fold == FoldRank },
	NeverWaits: func(p Params) bool { return p.(*ConSGDParams).Staleness < 0 },
	Says:       Says{Papers: terms.Cite("jiang2017heterogeneity")},
	New:        newConSGD,
}

func newConSGD(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*ConSGDParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("consgd: %w", err)
	}
	r := rule{name: "consgd", release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r.limited(p.Staleness))
}
