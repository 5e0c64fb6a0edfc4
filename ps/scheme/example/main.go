// Command alternate is fluentps with one more scheme. It shows how a module outside fluentps adds a scheme.
package main

import (
	"fluentps"
	"fluentps/ps/scheme"
)

// keys are the keys of a rule with `scheme: alternate` in the YAML.
type keys struct {
	Staleness int64 `yaml:"staleness" min:"0" idle:"lead" doc:"bound on c - v in even iterations; the bound in odd iterations is 0"`
}

func (k *keys) Check() error { return scheme.CheckTags(k) }

// Bound is the idea: workers wait for each other only before every second iteration.
func (k *keys) Bound(c int64) int64 { return k.Staleness * (1 - c%2) }

var alternate = scheme.Entry{
	Name:     "alternate",
	Rule:     "as ssp, with the bound staleness before even iterations and 0 before odd ones; one commit per push",
	Paper:    "an example",
	Evidence: "X",
	Use:      "as the start of your own scheme",
	Fold:     scheme.FoldArrival,
	Params:   func() scheme.Params { return &keys{Staleness: 3} },
	LeadMax:  func(p scheme.Params) (int64, bool) { return p.(*keys).Staleness, true },
	Whole:    func(c scheme.Common, _ scheme.Params) bool { return c.Fold == scheme.FoldRank },
	New: func(env scheme.Env, common scheme.Common, p scheme.Params) (scheme.Scheme, error) {
		return scheme.Gate{Name: "alternate", Lead: p.(*keys), Fold: scheme.FoldArrival}.New(env, common)
	},
}

func main() { fluentps.Main(fluentps.With(alternate)) }
