package scheme

import (
	"math"

	"fluentps/internal/policy/terms"
)

// ASPParams is empty: asp has no keys of its own.
type ASPParams struct{}

// Check never fails.
func (p *ASPParams) Check() error { return nil }

var asp = Entry{
	Name:  "asp",
	Short: "nobody waits; every push makes a version",
	Rule:  "a pull is answered at once; one commit per push",
	Paper: "FluentPS (Yao, Wu, Wang, IEEE Cluster 2019), condition table, row ASP, inferred from the released " +
		"code; MXNet kvstore dist_async",
	Evidence: "C",
	Use:      "the fastest iterations where stale gradients do no harm; the lower end of every comparison",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Params:   func() Params { return &ASPParams{} },
	LeadMax:  func(Params) (int64, bool) { return 0, false },
	Whole:    func(Common, Params) bool { return false },
	Says:     Says{Papers: terms.Cite("yao2019fluentps")},
	New:      newASP,

	NeverWaits: func(Params) bool { return true },
}

func newASP(env Env, common Common, params Params) (Scheme, error) {
	_ = params.(*ASPParams)
	// The release policy has no effect, since no pull is ever delayed.
	r := rule{name: "asp", limit: fixed{math.MaxInt64}, unbounded: true, release: ReleaseSoft, perPush: true}
	return newGate(env, common, FoldArrival, r)
}
