package local

// diloco is averaging whose servers take the mean change for a gradient.
var diloco = Entry{
	Name: "diloco", Periods: true,
	Rule:     "as averaging, but the servers step along the mean change with Nesterov's momentum",
	Source:   "DiLoCo (Douillard et al., arXiv 2311.08105), torchft and OpenDiLoCo [Q]",
	Papers:   []string{"douillard2023low"},
	Defaults: map[string]string{"local.steps": "500", "local.outer.name": "nesterov", "local.outer.lr": "0.7", "local.outer.momentum": "0.9"},
	make:     func(s Spec, e Env) Policy { return &rounds{periodOf(s, e)} },
}
