package local

import (
	"fmt"
	"math"
)

// selSync exchanges when the gradients of some worker change.
var selSync = PeriodEntry{
	Name: "selsync", Votes: true,
	Rule: "an exchange after each of the first warm steps; then one when the smoothed norm of the gradients of any " +
		"worker has changed by the share threshold in a step, and after local.steps steps at the latest. " +
		"All workers vote after each step, by a message of its own to the lead shard's server, which tells them the verdict",
	Source: "SelSync (Tyagi and Swany, CLUSTER 2023) and its code [Q]; how norms are smoothed is reconstructed [R], " +
		"and the limit of local.steps steps is ours",
	Papers: []string{"tyagi2023selective"},
	make: func(s Spec, _ Env) period {
		return &selective{most: s.Steps, warm: s.Period.Warm, threshold: s.Period.Threshold, smoothing: s.Period.Smoothing}
	},
}

type selective struct {
	most, warm           int64
	threshold, smoothing float64
	norm                 float64 // smoothed; below 0: none yet
	known                bool
}

func (p *selective) steps(n Now) int64 {
	if n.Step < p.warm {
		return 1
	}
	return p.most
}

// observe is told the norm of the gradient of each step, and says whether the worker votes for an exchange.
func (p *selective) observe(norm float64) (vote bool) {
	if !p.known {
		p.norm, p.known = norm, true
		return false
	}
	before := p.norm
	p.norm += p.smoothing * (norm - before)
	return math.Abs(p.norm-before) >= p.threshold*before
}

func (p *selective) Memory() []float64 {
	if !p.known {
		return nil
	}
	return []float64{p.norm}
}

func (p *selective) Recall(m []float64) error {
	if len(m) == 0 {
		return nil
	}
	if len(m) != 1 || !(m[0] >= 0) || math.IsInf(m[0], 0) {
		return fmt.Errorf("local: selsync cannot continue from %v: it saves the smoothed norm of the gradients", m)
	}
	p.norm, p.known = m[0], true
	return nil
}

// voter is a period whose rounds end when a worker votes for it.
type voter interface{ observe(norm float64) bool }

// Observe tells a policy the norm of the gradient of a step, and returns whether the worker votes for an exchange. It must be called for
// each step if Votes says so.
func Observe(p Policy, norm float64) (vote bool) {
	if v, ok := periodUnder(p).(voter); ok {
		return v.observe(norm)
	}
	return false
}

// Votes says whether the rounds of a policy end by votes.
func Votes(p Policy) bool {
	_, ok := periodUnder(p).(voter)
	return ok
}

func periodUnder(p Policy) period {
	if r, ok := p.(interface{ under() period }); ok {
		return r.under()
	}
	return nil
}
