package local

// streamingDiLoCo exchanges one fragment of the parameters after the other.
var streamingDiLoCo = Entry{
	Name: "streaming_diloco", Take: Mix, Fragments: true,
	Rule: "as diloco, but a fragment of the parameters is exchanged in every steps / fragments steps, in turn; a " +
		"worker goes on for delay steps before it takes the answer over, and keeps a share of its own parameters",
	Source:   "Streaming DiLoCo, and torchft's local_sgd.py [Q]",
	Papers:   []string{"douillard2025streaming"},
	Defaults: map[string]string{"local.steps": "100", "local.outer.name": "nesterov", "local.outer.lr": "0.7", "local.outer.momentum": "0.9"},
	make:     func(s Spec, _ Env) Policy { return &streams{each: max(1, s.Steps/max(1, s.Fragments)), delay: s.Delay} },
}

// streams are rounds between the exchanges of two fragments.
type streams struct {
	memoryless
	each  int64 // steps of a round
	delay int64
}

func (r *streams) Round(n Now) Round {
	steps := n.within(r.each)
	return Round{Steps: steps, Ahead: min(r.delay, steps)}
}
