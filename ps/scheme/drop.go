package scheme

import (
	"fmt"

	"fluentps/internal/policy/terms"
)

// DropParams are the keys of a drop rule.
type DropParams struct {
	Required     int64  `yaml:"required" min:"0" idle:"workers: an iteration waits for all pushes, and drops none" doc:"N_t, the number of pushes that close an iteration, those of the N_t fastest workers; 0, or more than the number of workers, means all workers, as bsp"`
	Contributors string `yaml:"contributors" values:"shard,step" doc:"shard: each shard takes the first N_t pushes that it receives, so the contributors to an iteration may differ between shards; step: the first shard of the rule does so, and the others take the pushes of the same workers"`
}

const (
	contributorsShard = "shard"
	contributorsStep  = "step"
)

// Check names the key, the value, the limit and the way out.
func (p *DropParams) Check() error {
	if p.Required < 0 {
		return fmt.Errorf("required: %d is below 0; set the number of pushes that close an iteration, or 0 for those of all workers", p.Required)
	}
	if p.Contributors != contributorsShard && p.Contributors != contributorsStep {
		return fmt.Errorf("contributors: %q is not one of shard, step; shard is the default", p.Contributors)
	}
	return nil
}

// ClosedBy is N_t.
func (p *DropParams) ClosedBy() int64 { return p.Required }

// drop is bsp with backup workers: v is the number of iterations closed, and slow workers may be behind it.
var drop = Entry{
	Name: "drop",
	Rule: "backup workers: iteration v closes with its first N_t pushes, which are one commit; a push of a closed " +
		"iteration is dropped and its worker continues at v; a pull waits until its iteration is open (c - v <= 0)",
	Short: "backup workers: the first `required` pushes close an iteration, later ones are dropped",
	Paper: "Sync-opt (Chen et al., arXiv 1604.00981, 2016), as in the documentation of the authors' framework; the " +
		"condition table of FluentPS (Yao, Wu, Wang, IEEE Cluster 2019), row drop stragglers, inferred",
	Evidence: "A",
	Use:      "many workers of which a few are slow now and then, when no gradient may be stale; (N - N_t)/N of the computation is wasted",
	Scope:    PerShard,
	Fold:     FoldRank,
	Behind:   true,
	Params:   func() Params { return &DropParams{Contributors: contributorsShard} },
	Agrees:   func(p Params) bool { return p.(*DropParams).Contributors == contributorsStep },
	LeadMax:  func(Params) (int64, bool) { return 0, true },
	Whole:    func(Common, Params) bool { return true },
	Says:     Says{Papers: terms.Cite("chen2016revisiting", "yao2019fluentps")},
	New:      newDrop,
}

func newDrop(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*DropParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	quorum := env.Workers
	if p.Required > 0 && p.Required < int64(quorum) {
		quorum = int(p.Required)
	}
	r := rule{name: "drop", limit: fixed{0}, release: ReleaseSoft, quorum: quorum, agree: p.Contributors == contributorsStep}
	return newGate(env, common, FoldRank, r)
}

// stagedOf is the number of staged pushes of iter.
func (g *gate) stagedOf(iter int64) (n int) {
	for _, p := range g.staged {
		if p.iter == iter {
			n++
		}
	}
	return n
}
