// Command alternate is fluentps with a scheme of its own: a module outside fluentps, as a researcher would write it.
package main

import (
	"fluentps"
	"fluentps/ps/scheme"
)

// keys are the keys of a rule with `scheme: alternate` in the YAML.
type keys struct {
	Staleness int64 `yaml:"staleness" min:"0" doc:"bound on c - v in even iterations; in odd ones it is 0"`
}

func (k *keys) Check() error { return scheme.CheckTags(k) }

// Bound is the idea: workers wait for each other only before every second iteration.
func (k *keys) Bound(c int64) int64 { return k.Staleness * (1 - c%2) }

var alternate = scheme.Entry{
	Name:     "alternate",
	Rule:     "as ssp, with the bound staleness before even iterations and 0 before odd ones; one commit per push",
	Paper:    "an example",
	Evidence: "X",
	Use:      "as the beginning of a scheme of your own",
	Fold:     scheme.FoldArrival,
	Params:   func() scheme.Params { return &keys{Staleness: 3} },
	LeadMax:  func(p scheme.Params) (int64, bool) { return p.(*keys).Staleness, true },
	Whole:    func(c scheme.Common, _ scheme.Params) bool { return c.Fold == scheme.FoldRank },
	New: func(env scheme.Env, common scheme.Common, p scheme.Params) (scheme.Scheme, error) {
		return scheme.Gate{Name: "alternate", Lead: p.(*keys), Fold: scheme.FoldArrival}.New(env, common)
	},
}

func main() { fluentps.Main(fluentps.With(alternate)) }
