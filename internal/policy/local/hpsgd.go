package local

// hpsgd trains on while its exchange is in flight.
var hpsgd = Entry{
	Name: "hpsgd", Late: true, Open: true, Weigh: Equally,
	Rule: "a worker goes on with steps of its own while its last push is in flight; when the servers' parameters have " +
		"arrived, it pushes what it has changed since and continues from them. " +
		"The answer of the lead shard's server says when; steps above 0 fixes the number of steps in its place",
	Source: "HPSGD (Zhou et al., arXiv 2009.02701) [A], as corrected: each gradient counts once; compensate is " +
		"Overlap-FedAvg's idea (the same author) in the form of DC-ASGD, reconstructed [R]",
	Papers:   []string{"zhou2020stale"},
	Defaults: map[string]string{"local.steps": "0"},
	make:     func(s Spec, _ Env) Policy { return &whileInFlight{most: s.Steps} },
}

// whileInFlight are rounds that run ahead of their answers.
type whileInFlight struct {
	memoryless
	most int64 // steps of a round; 0: until the answers are there
}

func (r *whileInFlight) Round(n Now) Round {
	if r.most == 0 {
		return Round{Steps: 1, Ahead: 1, Open: true}
	}
	steps := n.within(r.most)
	return Round{Steps: steps, Ahead: steps}
}
