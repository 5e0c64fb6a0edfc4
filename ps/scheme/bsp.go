package scheme

import (
	"errors"
	"fmt"

	"fluentps/internal/policy/terms"
)

// BSPParams are the keys of a bsp rule.
type BSPParams struct {
	Strict  bool    `yaml:"strict" doc:"every worker of an iteration reads the same version; false applies each push as it arrives and needs fold: arrival"`
	Release Release `yaml:"release" values:"soft,lazy,block" doc:"when a delayed pull is answered; with a bound of 0 all three give the same replies"`
}

// Check names the key, the value and the values allowed.
func (p *BSPParams) Check() error { return p.Release.check() }

var bsp = Entry{
	Name:  "bsp",
	Short: "every worker waits for all others after each iteration; results repeat to the bit",
	Rule:  "a pull waits until every worker has pushed the iteration (c - v <= 0); one commit per iteration",
	Paper: "FluentPS (Yao, Wu, Wang, IEEE Cluster 2019), condition table, row BSP, inferred from the released " +
		"code; strict as in MXNet kvstore dist_sync",
	Evidence: "C",
	Use:      "the exact baseline: equal machines, results that must be reproducible to the bit",
	Scope:    PerShard,
	Fold:     FoldRank,
	Params:   func() Params { return &BSPParams{Strict: true, Release: ReleaseSoft} },
	// bsp itself has no such key.
	Bound:   "scheme: ssp, staleness",
	LeadMax: func(Params) (int64, bool) { return 0, true },
	Whole:   func(c Common, p Params) bool { return c.Fold == FoldRank || p.(*BSPParams).Strict },
	Says:    Says{Papers: terms.Cite("yao2019fluentps"), Traits: []terms.Trait{terms.OneRound}},
	New:     newBSP,
}

func newBSP(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*BSPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("bsp: %w", err)
	}
	if !p.Strict && common.Fold != FoldArrival {
		return nil, errors.New("bsp: strict: false applies each push as it arrives, but fold: rank waits until its " +
			"iteration closes; set fold: arrival too, or leave strict out")
	}
	r := rule{name: "bsp", limit: fixed{0}, release: p.Release, perPush: !p.Strict}
	return newGate(env, common, FoldRank, r)
}
