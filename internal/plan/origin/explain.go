package origin

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"fluentps/internal/configs"
)

// hugeData is the magnitude from which samples are blamed for an overflow that parameters do not explain: no scaled data has such values.
const hugeData = 1e6

// Huge says that samples, not parameters, make a product overflow.
func Huge(batch, params float64) bool { return batch >= hugeData && batch > params }

// Explain says where the first value that is not finite arose, what it was made of, and which key acts there. data is the largest
// magnitude in the training data, for servers, which see no batch; 0: not known.
func Explain(f *Finding, c *configs.Config, data float64) string {
	if f.Batch == 0 {
		f.Batch = data
	}
	where, hint := f.where(c), f.hint(c)
	if n := f.numbers(c); n != "" {
		where += " (" + n + ")"
	}
	return fmt.Sprintf("diverged: the first value that is not finite, %s, arose %s; %s", f.Value, where, hint)
}

func (f *Finding) where(c *configs.Config) string {
	worker := fmt.Sprintf("of worker %d in iteration %d", f.Worker, f.Iter)
	switch {
	case c.Local.IsSet() && f.Server != Nobody:
		worker = fmt.Sprintf("of worker %d in exchange %d", f.Worker, f.Iter)
	case c.Local.IsSet():
		worker = fmt.Sprintf("of worker %d in its step %d", f.Worker, f.Iter)
	}
	switch f.Place {
	case Data:
		if f.Param == "" {
			return fmt.Sprintf("from the data: the batch %s overflows the loss", worker)
		}
		return fmt.Sprintf("in the data: %s in the batch %s", f.Param, worker)
	case Loss:
		return "in the loss " + worker
	case Gradient:
		return fmt.Sprintf("in the gradient: %s %s", f.tensor(), worker)
	case Payload:
		if f.Pull {
			return fmt.Sprintf("in the payload: %s as the reply to worker %d carries it in iteration %d, encoded as %s",
				f.tensor(), f.Worker, f.Iter, c.Payload.Pull)
		}
		return fmt.Sprintf("in the payload: the push of %s %s, encoded as %s", f.tensor(), worker, c.Payload.Push)
	case Sum:
		if f.Server == Nobody {
			return fmt.Sprintf("in the pending sum: %s, the sum of the gradients of ranks, %s", f.tensor(), worker)
		}
		return fmt.Sprintf("in the pending sum: %s, the sum of pushes on server %d for version %d", f.tensor(), f.Server, f.Iter)
	case Optimizer:
		if f.Server == Nobody {
			return fmt.Sprintf("in the optimizer: %s, in the step %s", f.tensor(), worker)
		}
		return fmt.Sprintf("in the optimizer: %s, in the step on server %d to version %d", f.tensor(), f.Server, f.Iter)
	case Parameters:
		if f.Server == Nobody {
			return fmt.Sprintf("in the parameters: %s, as worker %d reads it in iteration %d", f.tensor(), f.Worker, f.Iter)
		}
		return fmt.Sprintf("in the parameters: %s, in what server %d makes of pushes for version %d", f.tensor(), f.Server, f.Iter)
	}
	panic(fmt.Sprintf("origin: place %d", f.Place))
}

// numbers are the magnitudes that tell why.
func (f *Finding) numbers(c *configs.Config) string {
	var list []string
	say := func(name string, x float64) {
		if x > 0 {
			list = append(list, name+" "+Text(x))
		}
	}
	say("largest value of the data", f.Batch)
	say("largest parameter", f.Params)
	say("largest gradient", f.Gradient)
	if f.Place == Optimizer {
		say("gradient", f.Grad)
		say("weight decay adds", f.Decay)
		say("momentum", f.State)
	}
	say("lr", cmp.Or(f.LR, c.Train.Optimizer.LR))
	return strings.Join(list, ", ")
}

// hint names the key that acts.
func (f *Finding) hint(c *configs.Config) string {
	switch f.Place {
	case Data:
		return dataHint(c)
	case Payload:
		if f.Pull {
			return fmt.Sprintf("set payload.pull to float32 (now %s)", c.Payload.Pull)
		}
		if c.Payload.Push == "float16" {
			return "set payload.push to bfloat16 or float32: float16 (now) is infinite from 65520 on"
		}
		return fmt.Sprintf("set payload.push to float32 (now %s)", c.Payload.Push)
	case Optimizer:
		return f.stepHint(c)
	case Loss, Gradient, Sum, Parameters:
	}
	switch {
	case Huge(f.Batch, f.Params):
		return dataHint(c)
	case c.Model.Init != "" && f.Iter == 0 && f.Server == Nobody:
		return fmt.Sprintf("look at the values in model.init (now %s)", c.Model.Init)
	case decays(c) && f.Params >= grown:
		return decayHint(c)
	}
	return lrHint(c, f.Batch)
}

// grown is the magnitude of parameters that have grown from step to step.
const grown = 1e6

// decays says that weight decay, not the gradient, makes parameters grow: a step multiplies them by 1 - lr*weight_decay.
func decays(c *configs.Config) bool {
	o := &c.Train.Optimizer
	return o.Name != "adam" && o.Name != "lars" && o.LR*o.WeightDecay > 2
}

func decayHint(c *configs.Config) string {
	return fmt.Sprintf("lower train.optimizer.weight_decay (now %g): times lr it is above 2, so each step makes "+
		"parameters larger", c.Train.Optimizer.WeightDecay)
}

// dataHint says how data are scaled.
func dataHint(c *configs.Config) string {
	switch {
	case c.Data.IsTable():
		return fmt.Sprintf("standardize the columns, as in data.columns: {\"*\": standardize}, or raise data.scale (now %g), by which features "+
			"are divided", c.Data.Scale)
	case c.Data.Set == "ratings":
		return "scale the values of data.path"
	}
	if c.Data.Path == "" {
		return fmt.Sprintf("run it again on another host: data.set %s makes no such values, so memory is damaged", c.Data.Set)
	}
	return fmt.Sprintf("look at the values of data.path; data.set %s reads them as they are", c.Data.Set)
}

func lrHint(c *configs.Config, data float64) string {
	return fmt.Sprintf("lower train.optimizer.lr (now %g) or %s%s", c.Train.Optimizer.LR, warmUpHint(c), scaleHint(c, data))
}

// unscaled is the magnitude of a feature from which on it is likely that nobody has scaled the features.
const unscaled = 20

// scaleHint names the keys that make features and targets small; "": there is none, or they are small. data is the largest magnitude of a
// feature.
func scaleHint(c *configs.Config, data float64) (text string) {
	if c.Data.IsTable() && c.Data.Text.Columns.Kinds == "" && data > unscaled {
		text = ", or standardize the features by data.columns: {\"*\": standardize}"
	}
	if c.Data.Regresses() && c.Data.Path != "" && !c.Data.StandardizesTargets() {
		text += ", or set data.targets: standardize"
	}
	return text
}

func warmUpHint(c *configs.Config) string {
	if n := c.Train.Schedule.WarmUp; n > 0 {
		return fmt.Sprintf("raise train.schedule.warm_up (now %d)", n)
	}
	return "add train.schedule.warm_up"
}

// Worse names what acts on a run that ended with finite values which are worth nothing. data is the largest magnitude in the training
// data. Nothing has told where it began, so all keys are named that can make steps too large, unless one explains it alone.
func Worse(c *configs.Config, data float64) string {
	o, outer := &c.Train.Optimizer, c.Local.IsSet()
	switch {
	case data >= hugeData:
		return dataHint(c)
	case decays(c):
		return decayHint(c)
	}
	keys := []string{fmt.Sprintf("train.optimizer.lr (now %g)", o.LR)}
	add := func(set bool, key string, value float64) {
		if set {
			keys = append(keys, fmt.Sprintf("%s (now %g)", key, value))
		}
	}
	add(o.WeightDecay > 0, "train.optimizer.weight_decay", o.WeightDecay)
	add(o.L1 > 0, "train.optimizer.l1", o.L1)
	add(hasMomentum(o.Name) && o.Momentum > 0, "train.optimizer.momentum", o.Momentum)
	add(outer && c.Local.Outer.LR > 0, "local.outer.lr", c.Local.Outer.LR)
	add(outer && c.Local.Outer.Momentum > 0, "local.outer.momentum", c.Local.Outer.Momentum)
	text := "lower " + keys[0]
	if n := len(keys); n > 1 {
		text = fmt.Sprintf("lower one of %s and %s", strings.Join(keys[:n-1], ", "), keys[n-1])
	}
	text += ", or " + warmUpHint(c) + scaleHint(c, data)
	if late := delays(c); late != "" {
		text += ", or choose a scheme with a smaller delay than " + late
	}
	return text
}

// delays returns the schemes of a run in which gradients may be older than the parameters that they change.
func delays(c *configs.Config) string {
	if c.Baseline != configs.BaselineNone {
		return ""
	}
	for i := range c.Sync {
		if s := c.Sync[i].Schemes(); s != "bsp" {
			return s
		}
	}
	return ""
}

// stepHint names the key of the largest term of a step.
func (f *Finding) stepHint(c *configs.Config) string {
	o := &c.Train.Optimizer
	outer := c.Local.IsSet() && !f.Inner
	switch {
	case !outer && decays(c) && f.Decay > f.Grad:
		return decayHint(c)
	case !outer && f.Decay > f.Grad && o.WeightDecay > 0 && !normalizes(o.Name):
		return fmt.Sprintf("lower train.optimizer.weight_decay (now %g): it adds more to the step than the gradient does", o.WeightDecay)
	case outer && f.State > momentumShare*f.Grad && c.Local.Outer.Momentum > 0:
		return fmt.Sprintf("lower local.outer.momentum (now %g)", c.Local.Outer.Momentum)
	case outer:
		return fmt.Sprintf("lower local.outer.lr (now %g)", cmp.Or(c.Local.Outer.LR, 1))
	case f.State > momentumShare*math.Max(f.Grad, math.SmallestNonzeroFloat32) && o.Momentum > 0.9 && hasMomentum(o.Name):
		return fmt.Sprintf("lower train.optimizer.momentum (now %g) or train.optimizer.lr (now %g)", o.Momentum, o.LR)
	case o.Name == "lars":
		return fmt.Sprintf("lower train.optimizer.lr (now %g) or train.optimizer.trust (now %g)", o.LR, o.Trust)
	}
	return lrHint(c, f.Batch)
}

// momentumShare is how many times larger than the gradient a momentum of 0.9 becomes.
const momentumShare = 10

// normalizes says that decay is no part of the gradient, and that the step does not grow with the gradient, so the two do not compare.
func normalizes(rule string) bool { return rule == "adamw" || rule == "muon" }

func hasMomentum(rule string) bool { return rule == "momentum" || rule == "nesterov" || rule == "lars" }
