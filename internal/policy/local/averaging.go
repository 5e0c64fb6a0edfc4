package local

// averaging is parameter averaging: a round of steps, then the parameters become the mean over all workers.
var averaging = Entry{
	Name: "averaging", Periods: true,
	Rule: "each worker takes some steps from the servers' parameters, which then become the mean of what the " +
		"workers came to, weighted by samples",
	Source:   "DL4J's distributed training, part 1 [P]; McMahan et al., AISTATS 2017",
	Papers:   []string{"mcmahan2017communication"},
	Defaults: map[string]string{"local.steps": "10"},
	make:     func(s Spec, e Env) Policy { return &rounds{periodOf(s, e)} },
}

// Averages is the Spec of averaging after so many steps, without an optimizer on the servers.
func Averages(steps int64) Spec {
	s := Defaults()
	s.Policy, s.Steps = averaging.Name, steps
	return s
}

// rounds are rounds whose answers are taken over at their begin.
type rounds struct{ period }

func (r *rounds) under() period { return r.period }

func (r *rounds) Round(n Now) Round {
	steps := n.within(r.steps(n))
	return Round{Steps: steps, Votes: steps > 1 && Votes(r)}
}
