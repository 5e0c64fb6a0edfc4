package rules

import (
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
)

// crossClip refuses to clip means where the servers do not know the norm of one: shards that close an iteration with pushes of different
// workers have parts of different means.
func (w *checks) crossClip(t *keys.Table) {
	of := t.ByPath["train.clip.of"]
	c := w.Config
	if of.Bad || t.ByPath["train.clip.norm"].Bad || c.Train.Clip.Of != optim.ClipMean {
		return
	}
	if c.Train.Clip.Norm == 0 {
		w.Fatal(of.Node, of.Path, "set train.clip.norm above 0, such as 1", "says which gradient is clipped, but train.clip.norm is 0: none is")
		return
	}
	const out = "set of: worker"
	decides, _ := work.All.Lookup(c.Work.Policy)
	switch policy := t.ByPath["local.policy"]; {
	case c.Baseline == settings.BaselineAllreduce: // each rank has the whole mean
		return
	case c.Baseline != settings.BaselineNone:
		w.Fatal(of.Node, of.Path, out+", or baseline: none", "mean needs servers that tell each other norms, and those of %s do not", c.Baseline)
		return
	case !policy.Bad && c.Local.IsSet():
		w.Fatal(of.Node, of.Path, out+", which clips each step, or local.policy: none",
			"mean is that of the gradients of an iteration, but with local.policy %s workers push what they have changed", c.Local.Policy)
		return
	case !t.ByPath["work.policy"].Bad && decides.Scheme != "":
		w.Fatal(of.Node, of.Path, out+", or work.policy: fixed", "mean needs shards that agree on the contributors to an iteration, but with "+
			"work.policy %s every server closes iterations alone, and shards may take the pushes of different workers", c.Work.Policy)
		return
	case t.ByPath["sync"].Bad || len(w.RuleTables) == 0:
		return
	}
	const rule = `write sync: [{match: "*", scheme: drop, contributors: step}], which is bsp with backup workers, or ` + out
	if len(c.Sync) > 1 {
		w.Fatal(of.Node, of.Path, rule, "mean needs one rule for all parameters, whose shards agree on contributors, but sync has %d rules: "+
			"the shards of each decide alone", len(c.Sync))
		return
	}
	r := &c.Sync[0]
	e, known := scheme.All.Lookup(r.Scheme)
	switch {
	case !known || w.RuleTables[0].ByPath["scheme"] != nil && w.RuleTables[0].ByPath["scheme"].Bad:
	case len(r.Then) > 0 || e.Agrees == nil || r.Params == nil || !e.Agrees(r.Params):
		w.Fatal(of.Node, of.Path, rule, "mean needs shards that agree on the contributors to an iteration, but under sync[0] (%s) every "+
			"server decides alone, and shards may take the pushes of different workers", r.Schemes())
	case r.Push != settings.PushGradient:
		w.Fatal(of.Node, of.Path, "set sync[0].push: gradient, or "+out,
			"mean is that of gradients, but under sync[0] (%s) workers push deltas", r.Scheme)
	}
}
