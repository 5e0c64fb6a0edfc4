package configs

import (
	"fmt"

	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// workDefaults makes the scheme that a policy needs the default.
func (w *walker) workDefaults(t *table) {
	if e, _ := work.All.Lookup(w.cfg.Work.Policy); e.Scheme != "" {
		keys := ""
		if e.Copies {
			keys = fmt.Sprintf(", required: %d", w.cfg.Work.Required)
		}
		t.setDefault("sync", fmt.Sprintf(`[{match: "*", scheme: %s%s}]`, e.Scheme, keys))
	}
}

// crossSteps refuses what does not go with workers that compute in steps of work.micro samples.
func (w *walker) crossSteps(t *table) {
	policy := t.byPath["work.policy"]
	e, _ := work.All.Lookup(w.cfg.Work.Policy)
	if policy.bad || !e.Steps {
		return
	}
	encodes, _ := w.cfg.Payload.Encoded()
	for _, c := range []struct {
		path, hint, msg string
		refused         bool
	}{
		{"baseline", "set baseline: none, or work.policy: fixed", "exchanges whole iterations, but work.policy " + e.Name +
			" cuts them", w.cfg.Baseline != BaselineNone},
		{"cluster.hierarchy", "set hierarchy: none, or work.policy: fixed",
			"sums the gradients of a host's ranks layer by layer, but work.policy " + e.Name +
				" lets each rank compute in steps of its own", w.cfg.Cluster.Hierarchy != HierarchyNone},
		{"local.policy", "set local.policy: none, or work.policy: fixed",
			fmt.Sprintf("%s takes several optimizer steps in a round, but work.policy %s cuts the batch of one",
				w.cfg.Local.Policy, e.Name), w.cfg.Local.IsSet()},
		{"payload.push", "set payload.push: float32, or work.policy: fixed",
			fmt.Sprintf("%s remembers what a push left out, but with work.policy %s a worker also pushes for others",
				w.cfg.Payload.Push, e.Name), (e.Moves || e.Copies) && w.cfg.Payload.Residual()},
		{"payload.push", "set payload.push: float32, or work.policy: fixed",
			fmt.Sprintf("%s rounds pushes, and to decode them multiplies the errors by weights of up to "+
				"work.code.condition_max", w.cfg.Payload.Push), e.Coded && encodes && !w.cfg.Payload.Residual()},
		{"model.name", "choose a model without batch norm, or set work.policy: fixed", w.cfg.Model.Name +
			" has statistics, which are values and not sums of changes: decoded approximately, after losses or at a " +
			"deadline, they would be too small", e.Coded && len(workload.Statistics(w.cfg.ModelSpec())) > 0},
		{"device.kind", "set device.kind: cpu, or work.threads_max: 0",
			"must be cpu where work.threads_max moves threads between workers: a GPU has none to give",
			w.cfg.Work.ThreadsMax > 0 && w.cfg.Device.Kind != "cpu"},
		{"work.threads_max", fmt.Sprintf("set it to %d or more, or to 0", w.cfg.Device.Threads),
			fmt.Sprintf("is %d, but each worker begins with the %d of device.threads", w.cfg.Work.ThreadsMax,
				w.cfg.Device.Threads), w.cfg.Work.ThreadsMax > 0 && w.cfg.Work.ThreadsMax < w.cfg.Device.Threads},
		{"work.code.alpha", "set it above 1, or to 0",
			fmt.Sprintf("is %g: a straggler that takes no longer than the others is none, and nothing would be coded",
				w.cfg.Work.Code.Alpha), e.Coded && w.cfg.Work.Code.Alpha > 0 && w.cfg.Work.Code.Alpha <= 1},
		{"work.code.alpha", "set work.code.stragglers to 1 or more, or alpha: 0",
			fmt.Sprintf("is %g, but work.code.stragglers is 0: all of a batch is its worker's alone", w.cfg.Work.Code.Alpha),
			e.Coded && w.cfg.Work.Code.Alpha > 1 && w.cfg.Work.Code.Stragglers == 0},
		{"work.time", "set it to the computing time of an iteration, such as 100ms", "is 0: " + e.Name +
			" computes for a fixed time", e.Timed && w.cfg.Work.Time == 0},
	} {
		if at := t.byPath[c.path]; c.refused && !at.bad {
			w.fatal(w.nodeOf(t, at, w.tree), at.path, c.hint, "%s", c.msg)
		}
	}
	if !t.byPath["sync"].bad {
		w.crossStepRules(policy, e)
	}
}

// crossNeeds refuses schemes that decode what a policy of the work axis pushes, without that policy.
func (w *walker) crossNeeds(t *table) {
	if t.byPath["sync"].bad {
		return
	}
	for i := range w.cfg.Sync {
		phases, at := w.phasesOf(i)
		for _, ph := range phases {
			if s, ok := scheme.All.Lookup(ph.Scheme); ok && s.Work != "" && s.Work != w.cfg.Work.Policy {
				w.fatal(at.node, at.path, "set work.policy: "+s.Work+", or another scheme",
					"%s decodes the pushes of work.policy %s, but that is %s", s.Name, s.Work, w.cfg.Work.Policy)
			}
		}
	}
}

// crossStepRules refuses schemes that need whole pushes.
func (w *walker) crossStepRules(policy *leaf, e work.Entry) {
	for i := range w.cfg.Sync {
		r := &w.cfg.Sync[i]
		for _, ph := range r.Phases() {
			s, ok := scheme.All.Lookup(ph.Scheme)
			var why, hint string
			switch {
			case !ok:
			case e.Scheme != "":
				why, hint = w.unlike(e, i)
			case s.CopiesOf(ph.Params) != scheme.Pulled:
				why, hint = "keep copies of the parameters and add their own pushes to them", w.pulling(i)+", or work.policy: fixed"
			case s.Scope == scheme.PerServer:
				why, hint = "wait for a grant before they push", "set another scheme, or work.policy: fixed"
			case e.Moves && s.WantsNorms(ph.Params):
				why, hint = "tell the norms of whole pushes", "set another scheme, or work.policy: fixed"
			case r.Push == PushDelta:
				why, hint = "push deltas of whole iterations", "set "+w.rows[i].prefix+".push: gradient if the scheme takes it, or work.policy: fixed"
			}
			if why != "" {
				if e.Scheme != "" {
					w.fatal(policy.node, policy.path, hint, "%s closes iterations itself, but sync[%d] (%s) %s", e.Name, i, r.Schemes(), why)
					return
				}
				w.fatal(policy.node, policy.path, hint, "%s lets workers compute in steps, but under sync[%d] (%s) they %s", e.Name, i, ph.Scheme, why)
				return
			}
		}
	}
}

// unlike says why a rule is not the one that the policy needs; "" if it is.
func (w *walker) unlike(e work.Entry, i int) (why, hint string) {
	r := &w.cfg.Sync[i]
	hint = "leave sync out: the policy sets it"
	if r.Scheme != e.Scheme || len(r.Then) > 0 {
		return "is not scheme: " + e.Scheme + " alone", hint
	}
	p, isDrop := r.Params.(*scheme.DropParams)
	switch {
	case r.Push == PushDelta && !w.cfg.Local.IsSet():
		return "takes deltas of whole iterations, and the policy pushes gradients of others", hint
	case isDrop && p.Required != int64(w.cfg.Work.Required):
		return fmt.Sprintf("closes them at required: %d, and work.required is %d", p.Required, w.cfg.Work.Required), hint +
			", or set " + w.rows[i].prefix + fmt.Sprintf(".required: %d", w.cfg.Work.Required)
	case isDrop && p.Contributors != "shard":
		return "has contributors: " + p.Contributors + ", and each shard takes the copies that it gets first", "set " +
			w.rows[i].prefix + ".contributors: shard"
	}
	return "", ""
}
