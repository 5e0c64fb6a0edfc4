package local

import "math"

// qsr is the quadratic synchronization rule.
var qsr = PeriodEntry{
	Name: "qsr", Endless: true,
	Rule: "(alpha / learning rate)^2 steps, rounded down, at least local.steps and at most what the budget leaves; " +
		"local.steps while the rate rises",
	Source: "QSR (Gu et al., ICLR 2024) and its code [Q]",
	Papers: []string{"gu2024quadratic"},
	make:   func(s Spec, e Env) period { return &quadratic{env: e, base: s.Steps, alpha: s.Period.Alpha} },
}

type quadratic struct {
	memoryless
	env   Env
	base  int64
	alpha float64
}

func (p *quadratic) steps(n Now) int64 {
	if n.Step < p.env.WarmUp {
		return p.base
	}
	return max(p.base, finite(math.Floor(math.Pow(p.alpha/p.env.Rate(float64(n.Step)), 2))))
}
