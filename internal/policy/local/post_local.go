package local

import "fmt"

// postLocal averages after every step at first, and then after every period.
var postLocal = Entry{
	Name: "post_local", Periods: true, Varies: func(*Spec) bool { return true },
	Rule: "every step is an exchange up to local.switch; then as averaging. With sgd, momentum and nesterov the " +
		"first phase averages gradients; adam's states differ between workers",
	Source:   "Lin et al., ICLR 2020, and PyTorch's post_localSGD [Q]",
	Papers:   []string{"lin2020dont"},
	Defaults: map[string]string{"local.steps": "4"},
	make:     func(s Spec, e Env) Policy { return &afterSwitch{periodOf(s, e), s.Switch} },
}

// afterSwitch are rounds of one step up to a step, and then those of a period.
type afterSwitch struct {
	period
	at int64 // the step with which the period begins
}

func (r *afterSwitch) under() period { return r.period }

func (r *afterSwitch) Round(n Now) Round {
	if n.Step < r.at {
		return Round{Steps: 1}
	}
	steps := n.within(r.steps(n))
	return Round{Steps: steps, Votes: steps > 1 && Votes(r)}
}

func (r *afterSwitch) String() string {
	return fmt.Sprintf("every step up to step %d, then %v", r.at, r.period)
}
