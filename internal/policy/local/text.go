package local

import (
	"fmt"
	"strconv"
)

// RoundText says what a round is, and the exchange that ends it. warmUp is the steps in which the learning rate rises.
func (s *Spec) RoundText(warmUp int64) string {
	e, _ := All.Lookup(s.Policy)
	steps := stepsOf(s.Steps, "step") + " of each worker"
	switch {
	case e.Fragments:
		return fmt.Sprintf("%s of each worker and the exchange of one of %d fragments, in turn", stepsOf(s.Constant(), "step"), s.Fragments)
	case s.Steps == 0:
		return "an exchange, and as many steps of each worker as the last one takes, at least 1"
	case e.Name == asyncLocal.Name && s.Dynamic:
		return fmt.Sprintf("%s of the fastest worker, fewer of slower ones, and an exchange", stepsOf(s.Steps, "step"))
	case e.Periods:
		steps = s.periodText(steps, warmUp)
	}
	switch {
	case e.Name == postLocal.Name:
		return fmt.Sprintf("1 step of each worker and an exchange up to step %d, and from there %s and an exchange", s.Switch, steps)
	case e.Varies != nil && e.Varies(s):
		return "an exchange, and the steps before it, whose number changes while training runs"
	}
	return steps + " and an exchange"
}

// periodText says how many steps a round of a period has.
func (s *Spec) periodText(steps string, warmUp int64) string {
	p := s.Period
	switch p.Name {
	case qsr.Name:
		text := fmt.Sprintf("%d to (%s / learning rate)^2 steps of each worker", s.Steps, decimal(p.Alpha))
		if warmUp > 0 {
			text += fmt.Sprintf(" (%d in %s of warm-up)", s.Steps, stepsOf(warmUp, "step"))
		}
		return text
	case adaComm.Name:
		return fmt.Sprintf("at first %s, and fewer every %s as the loss falls,", steps, stepsOf(p.Interval, "exchange"))
	case selSync.Name:
		return fmt.Sprintf("1 to %d steps of each worker, until the gradients of one have changed by %s (1 up to step %d),",
			s.Steps, decimal(p.Threshold), p.Warm)
	}
	return steps
}

func stepsOf(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
