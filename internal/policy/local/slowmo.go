package local

// slowMo is averaging with a momentum on the servers that the workers' learning rate scales; bmuf is another name.
var (
	slowMo = Entry{
		Name: "slowmo", Periods: true, Outer: "slowmo",
		Rule:     "as averaging, but the servers keep u = momentum * u + change / rate of the workers, and move by lr * rate * u",
		Source:   "SlowMo (Wang et al., ICLR 2020), Algorithm 1 [Q]; the default of its momentum, from a recalled range [M], is reconstructed",
		Papers:   []string{"wang2020slow"},
		Defaults: map[string]string{"local.steps": "12", "local.outer.momentum": "0.5"},
		make:     func(s Spec, e Env) Policy { return &rounds{periodOf(s, e)} },
	}
	bmuf = Entry{
		Name: "bmuf", Periods: true, Outer: "slowmo",
		Rule:     "another name of slowmo: blockwise model update filtering is slowmo at a constant learning rate",
		Source:   "BMUF (Chen and Huo, ICASSP 2016) as a case of SlowMo [Q]; the paper was not read",
		Papers:   []string{"chen2016scalable"},
		Defaults: map[string]string{"local.steps": "12", "local.outer.momentum": "0.5"},
		make:     func(s Spec, e Env) Policy { return &rounds{periodOf(s, e)} },
	}
)
