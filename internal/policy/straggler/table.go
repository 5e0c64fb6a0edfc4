package straggler

import "fluentps/internal/policy/named"

// Entry is a kind of slowness.
type Entry struct {
	Name   string
	Rule   string // what is added to an iteration; one part is (factor - 1) times its computing, or sleep
	Source string // with the evidence tag of the notes
	After  bool   // the worker sleeps after the update, before it starts the iteration, and not within its computing
	make   func(s Spec, e Env) Injector
}

// All are the kinds, the default first.
var All = named.Table[Entry]{
	{Name: "constant", Rule: "one part", Source: "ours", make: newConstant},
	{Name: "exponential", Rule: "parts drawn from an exponential distribution of mean 1, so that the iteration is a " +
		"shifted exponential", Source: "Lee et al., IEEE Trans. Inf. Theory 2018 [P]", make: newExponential},
	{Name: "normal", Rule: "parts drawn from a normal distribution of mean 1 and standard deviation spread; a " +
		"negative draw is 0", Source: "ours", make: newNormal},
	{Name: "lognormal", Rule: "parts drawn from a lognormal distribution of mean 1, whose logarithm has the standard " +
		"deviation spread", Source: "DropCompute, NeurIPS 2023 [A]", make: newLognormal},
	{Name: "two_state", Rule: "one part in slow phases, nothing between them; phases begin with probability enter and " +
		"end with probability leave, per iteration", Source: "ours", make: newTwoState},
	{Name: "dbs", Rule: "with probability chance an epoch begins epochs_min to epochs_max slow epochs; each takes " +
		"sleep_min to sleep_max longer, drawn once for them, in equal parts an iteration",
		Source: "DBS, authors' disturbance test [A]; that the time is drawn once, and its equal parts, are ours [R]", make: newDBS},
	{Name: "fluentps", Rule: "workers whose index is a multiple of every sleep after the update: a normal draw of " +
		"mean sleep and standard deviation spread times sleep, in whole milliseconds; a negative draw is 0",
		Source: "FluentPS, authors' released solvers [C]", After: true, make: newFluentPS},
	{Name: "trace", Rule: "what is missing until the iteration has computed as long as in a run before", Source: "ours", make: newTrace},
}

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }
