package scheme

import (
	"fmt"
	"math"

	"fluentps/internal/policy/terms"
)

// RennalaParams are the keys of a rennala rule.
type RennalaParams struct {
	Pushes int64 `yaml:"pushes" min:"0" idle:"pushes" doc:"B, the number of pushes computed on the newest version that make the next one, of any workers; 0 is the number of workers"`
}

// Check names the key, the value, the limit and the way out.
func (p *RennalaParams) Check() error {
	switch {
	case p.Pushes < 0:
		return fmt.Errorf("pushes: %d is below 0; set the number of pushes that make a version, 1 or more, or 0 for the "+
			"number of workers", p.Pushes)
	case p.Pushes > math.MaxInt32:
		return fmt.Errorf("pushes: %d is above %d, more pushes than any version needs; lower it", p.Pushes, math.MaxInt32)
	}
	return nil
}

// Several implements Several.
func (p *RennalaParams) Several(workers int) (int64, bool) {
	if p.Pushes == 0 {
		return int64(workers), false
	}
	return p.Pushes, false
}

// VersionText says what a version is.
func (p *RennalaParams) VersionText(workers int) string {
	pushes, _ := p.Several(workers)
	return fmt.Sprintf("one for %d pushes of the newest version", pushes)
}

var rennala = Entry{
	Name: "rennala",
	Rule: "a pull is answered at once; B pushes computed on the newest version make one commit of their mean; a " +
		"push computed on an older version is dropped",
	Short:    "`pushes` pushes of the newest version make the next; stale ones are dropped; nobody waits",
	Paper:    "Rennala SGD (2023), recalled from accounts of it: softsync without the stale pushes",
	Evidence: "R",
	Use:      "large batches without stale gradients where speeds differ: fast workers compute more of a batch, and slow ones hold up nobody",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Weight:   "1/B",
	Params:   func() Params { return &RennalaParams{} },
	LeadMax:  func(Params) (int64, bool) { return 0, false },
	Whole:    func(Common, Params) bool { return false },
	Says:     Says{Papers: terms.Cite("tyurin2023optimal")},
	New:      newRennala,

	DropsStale: true,
	NeverWaits: func(Params) bool { return true },
}

func newRennala(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*RennalaParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("rennala: %w", err)
	}
	pushes, _ := p.Several(max(1, env.Workers))
	r := rule{name: "rennala", limit: fixed{math.MaxInt64}, unbounded: true, release: ReleaseSoft, perPush: true,
		pushesPerVersion: pushes, mix: fresh{delays: 1, version: env.Start}}
	return newGate(env, common, FoldArrival, r)
}
