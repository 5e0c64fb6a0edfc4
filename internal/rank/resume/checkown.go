package resume

import (
	"errors"
	"fmt"

	"fluentps/internal/core/steps"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/local"
	"fluentps/internal/rank/train"
)

// checkOwn compares what a worker saved of its own steps with its limits. A run whose local section has changed may take fewer steps in a
// round, and has another policy to remember.
func (r *Search) checkOwn(q *Origin, s *train.State) error {
	const most = checkpoint.CountMax
	same := !r.changed(q.Manifest, "local")
	o := s.Own
	switch {
	case same && o == nil && r.station.Config.Local.IsSet():
		return errors.New("it has no own, but with local.policy " + r.station.Config.Local.Policy +
			" a worker takes steps of its own: one of the two was changed")
	case same && o != nil && !r.station.Config.Local.IsSet():
		return errors.New("it has own, but without local.policy no worker takes steps of its own: one of the two was changed")
	case o == nil:
		return nil
	}
	if err := first(checkpoint.Within("own.step", o.Step, 0, most),
		checkpoint.Within("own.round", o.Round, 0, local.StepsMax), checkpoint.Within("own.ahead", o.Ahead, 0, o.Round),
		checkpoint.Within("own.pushed", o.Pushed, 0, o.Step), checkpoint.Within("own.done", o.Done, 0, doneMost(o)),
		checkpoint.Within("own.last", o.Last, -1, s.Next-1),
		checkpoint.Within("own.samples", o.Samples, 0, most), checkpoint.Within("steps", s.Steps, 0, o.Step), checkSums(o)); err != nil || !same {
		return err
	}
	return r.checkPolicy(o)
}

// doneMost is the most steps of the open round that a worker may have taken.
func doneMost(o *steps.Count) int64 {
	if o.Open { // it goes on until the answers are there
		return o.Step
	}
	return min(o.Round, o.Step)
}

// checkSums checks what a worker has computed since the last push of each fragment.
func checkSums(o *steps.Count) error {
	for f, s := range o.Since {
		at := fmt.Sprintf("own.since[%d].", f)
		err := first(checkpoint.Within(at+"samples", s.Samples, 0, checkpoint.CountMax), checkpoint.Within(at+"correct", s.Correct, 0, s.Samples))
		if err == nil && !(s.Loss >= 0) {
			err = fmt.Errorf("%sloss is %v, must be 0 or more", at, s.Loss)
		}
		if err == nil && s.Samples < o.Samples {
			err = fmt.Errorf("%ssamples is %d, but own.samples is %d: the worker computed as many since its last push, "+
				"whatever it pushed then", at, s.Samples, o.Samples)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkPolicy verifies that the policy accepts its memory, and that the fragments are those of the run.
func (r *Search) checkPolicy(o *steps.Count) error {
	c := r.station.Config
	n := int64(1)
	if f, err := layout.Fragments(c, r.station.Plan); err != nil {
		return err
	} else if f != nil {
		n = f.N()
	}
	if int64(len(o.Since)) != n {
		return fmt.Errorf("own.since has %d entries, but the parameters are exchanged in %d fragments: one of the two "+
			"was changed", len(o.Since), n)
	}
	env, err := c.LocalEnv(len(r.station.Roles.Workers))
	if err != nil {
		return err
	}
	policy, err := local.New(c.Local, env)
	if err != nil {
		return err
	}
	if err := policy.Recall(o.Policy); err != nil {
		return fmt.Errorf("own.policy: %w", err)
	}
	return nil
}
