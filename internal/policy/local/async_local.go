package local

import "math"

// asyncLocal is local SGD without a barrier: delayed Nesterov on the servers, steps by the worker's speed.
var asyncLocal = Entry{
	Name: "async_local", Outer: "delayed_nesterov", Weigh: Whole, PerPush: true, Varies: func(s *Spec) bool { return s.Dynamic },
	Rule: "each worker takes steps in proportion to its speed; each push is a version, and the servers change " +
		"their momentum after every outer.every versions",
	Source: "Liu et al., arXiv 2401.09135: delayed Nesterov, code in HALoS [Q]; how steps are rounded (DyLU) is recalled [M]: reconstructed",
	Papers: []string{"liu2024asynchronous"},
	// a step grows to lr / (1 - momentum)
	Defaults: map[string]string{"local.steps": "32", "local.outer.lr": "0.1", "local.outer.momentum": "0.9"},
	make:     func(s Spec, e Env) Policy { return &bySpeed{most: s.Steps, dynamic: s.Dynamic} },
}

// bySpeed are rounds whose length goes with the worker's speed.
type bySpeed struct {
	memoryless
	most    int64
	dynamic bool
}

func (r *bySpeed) Round(n Now) Round {
	steps := r.most
	if r.dynamic {
		steps = max(1, int64(math.Round(float64(r.most)*min(1, n.Share))))
	}
	return Round{Steps: n.within(steps)}
}
