package runtime

import (
	"fluentps/ps/core"
	"fluentps/ps/layout"
)

// schemeOf names the scheme of a rule.
func (r *rank) schemeOf(rule int) string { return r.cfg.Sync[rule].Scheme }

func (r *rank) copyOf(rule int) core.Copy { return layout.CopyOf(r.cfg, rule, len(r.roles.Workers)) }

// maySkip says whether the shards of a rule may send a worker past iterations.
func (r *rank) maySkip(rule int) bool {
	phases, err := r.cfg.PhasesOf(rule, len(r.computes), r.set.Train.Rows())
	return err != nil || core.MaySkip(phases)
}
