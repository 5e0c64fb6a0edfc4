package local

// easgd ties the workers to the servers with a spring.
var easgd = Entry{
	Name: "easgd", Take: Elastic, Late: true, Weigh: Whole,
	Rule: "after each round a worker moves the share pull of the way to the servers' parameters, and they move as " +
		"far towards it; it never replaces its own. It compares with the answer to its last push, so it never waits for " +
		"one before the round ends",
	Source:   "EASGD (Zhang, Choromanska and LeCun, NIPS 2015), recalled [M]: reconstructed",
	Papers:   []string{"zhang2015elastic"},
	Defaults: map[string]string{"local.steps": "10"},
	make:     func(s Spec, _ Env) Policy { return &whileInFlight{most: max(1, s.Steps)} },
}
