package configs

import (
	"fmt"
	"slices"

	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/ps/scheme"
)

// takesSteps says whether workers take steps of their own. sync may stand before local, so the walker looks at the tree.
func (w *walker) takesSteps() bool {
	if w.tree == nil {
		return false
	}
	n := child(w.tree, "local")
	if n == nil {
		return false
	}
	policy := valueOf(n, "policy")
	_, known := local.All.Lookup(policy)
	return known && policy != local.None
}

// pushesChanges makes delta the default of push in a rule where workers take steps of their own.
func (w *walker) pushesChanges(t *table) {
	if w.takesSteps() {
		t.setDefault("push", PushDelta)
	}
}

// localDefaults gives keys the defaults of the policy.
func (w *walker) localDefaults(t *table) {
	e, _ := local.All.Lookup(w.cfg.Local.Policy)
	for path, def := range e.Defaults {
		t.setDefault(path, def)
	}
}

// crossLocal refuses what does not go with steps of the workers' own.
func (w *walker) crossLocal(t *table) {
	policy, steps := t.byPath["local.policy"], t.byPath["local.steps"]
	if policy.bad || steps.bad || t.byPath["local.host_steps"].bad || t.byPath["local.fragments"].bad { // numbers that divide others
		return
	}
	l := &w.cfg.Local
	e, _ := local.All.Lookup(l.Policy)
	switch {
	case !l.IsSet() && l.HostSteps != 1:
		at := t.byPath["local.host_steps"]
		w.fatal(w.nodeOf(t, at, w.tree), at.path, "set local.policy: averaging, or another policy, or leave it out",
			"%d steps between two averagings within a host need a policy for those between hosts", l.HostSteps)
		return
	case !l.IsSet() && l.Steps != 1:
		w.fatal(steps.node, steps.path, "set local.policy: averaging, or another policy",
			"%d steps between two exchanges need a policy that says what the servers do with them", l.Steps)
		return
	case !l.IsSet():
		if name := t.byPath["local.period.name"]; !name.bad && l.Period.Changes() {
			w.fatal(w.nodeOf(t, name, w.tree), name.path, "remove it, or set local.policy: averaging",
				"every step is an exchange, but the period is %s", l.Period.Name)
		}
		return
	case l.Steps == 0 && !e.Open:
		w.fatal(steps.node, steps.path, "set 1 or more", "is 0: only %s takes as many steps as an exchange takes", orList(local.OpenOnes()))
	}
	w.crossVotes(t)
	w.crossOuter(t)
	if name := t.byPath["local.period.name"]; !name.bad && !e.Periods && l.Period.Changes() {
		w.fatal(w.nodeOf(t, name, w.tree), name.path, "remove it, or choose policy "+orList(local.OfPeriods()),
			"%s has rounds of its own, but the period is %s", e.Name, l.Period.Name)
	}
	if p, _ := local.Periods.Lookup(l.Period.Name); p.Endless && e.Periods {
		w.crossEndless(t)
	}
	w.crossFragments(t)
	for _, c := range []struct {
		path, hint, msg string
		refused         bool
	}{
		{"baseline", "set baseline: none, or local.policy: none",
			"exchanges gradients in every step, but local has policy " + l.Policy, w.cfg.Baseline != BaselineNone},
		{"train.optimizer.name", "set sgd, with momentum in local.outer",
			"with cluster.hierarchy: node the parameters of a host's ranks are averaged, and the state of their optimizers (" +
				w.cfg.Train.Optimizer.Name + ") is not kept in checkpoints", w.cfg.Cluster.Hierarchy != HierarchyNone &&
				w.cfg.Train.Optimizer.Name != "sgd"},
		{"local.state", "set own, or another optimizer", w.cfg.Train.Optimizer.Name + " has no state to average",
			l.AveragesState() && len(optim.StateNames(w.cfg.Train.Optimizer.Name)) == 0},
		{"local.host_steps", "set cluster.hierarchy: node, or leave it out",
			fmt.Sprintf("%d steps between two averagings within a host, but cluster.hierarchy is none", l.HostSteps),
			w.cfg.Cluster.Hierarchy == HierarchyNone && l.HostSteps != 1},
		{"local.host_steps", "let steps be a multiple of host_steps",
			fmt.Sprintf("%d steps do not divide %d steps evenly", l.HostSteps, l.Steps),
			w.cfg.Cluster.Hierarchy != HierarchyNone && l.Steps%l.HostSteps != 0},
		{"local.host_steps", "let steps / fragments be a multiple of host_steps",
			fmt.Sprintf("%d steps do not divide the %d between two fragments evenly", l.HostSteps, l.Constant()),
			w.cfg.Cluster.Hierarchy != HierarchyNone && e.Fragments && l.Constant()%l.HostSteps != 0},
		{"work.policy", "set work.policy: fixed, or local.policy: none", w.cfg.Work.Policy +
			" deals the batches of an iteration, but with local.policy " + l.Policy + " a push has several steps", w.cfg.DealsBatches()},
		{"train.optimizer.name", "choose another optimizer",
			"lars needs the norms of whole layers, but a worker's own steps go along their pieces", w.cfg.Train.Optimizer.Name == "lars"},
	} {
		if at := t.byPath[c.path]; c.refused && !at.bad {
			w.fatal(w.nodeOf(t, at, w.tree), at.path, c.hint, "%s", c.msg)
		}
	}
	if !t.byPath["sync"].bad {
		w.crossLocalRules(policy, e)
	}
}

// crossVotes checks that workers which decide together when to exchange are always in the same round.
func (w *walker) crossVotes(t *table) {
	name := t.byPath["local.period.name"]
	e, _ := local.Periods.Lookup(w.cfg.Local.Period.Name)
	if name.bad || !e.Votes || t.byPath["sync"].bad {
		return
	}
	for i := range w.cfg.Sync {
		for k, ph := range w.cfg.Sync[i].Phases() {
			if ph.Scheme != "bsp" {
				w.fatal(w.nodeOf(t, name, w.tree), name.path,
					fmt.Sprintf("set %s: bsp, or another period", w.inScheme(i, k, "scheme")),
					"%s lets all workers decide together when to exchange, but under sync[%d] (%s) they are in different rounds", e.Name, i, ph.Scheme)
				return
			}
		}
	}
}

// crossEndless checks that a run whose rounds may take all steps that are left has a number of them.
func (w *walker) crossEndless(t *table) {
	name, stop := t.byPath["local.period.name"], w.cfg.Train.Stop
	if name.bad || t.byPath["train.stop.epochs"].bad || t.byPath["train.stop.samples"].bad || stop.Epochs > 0 || stop.Samples > 0 {
		return
	}
	w.fatal(w.nodeOf(t, name, w.tree), name.path, "set train.stop.epochs or train.stop.samples too, or another period",
		"%s takes all steps that are left where the learning rate is low, but the run has no number of them, and would "+
			"never end", w.cfg.Local.Period.Name)
}

// crossOuter checks the rule of the servers.
func (w *walker) crossOuter(t *table) {
	name, momentum := t.byPath["local.outer.name"], t.byPath["local.outer.momentum"]
	o := w.cfg.Local.Outer
	if known, holds := t.holds(name); known && holds && !name.bad && !momentum.bad && o.Name == "sgd" && o.Momentum > 0 {
		w.fatal(w.nodeOf(t, momentum, w.tree), momentum.path, "set local.outer.name: momentum or nesterov, or momentum: 0",
			"sgd has no momentum, but it is %s", number(o.Momentum))
	}
}

// crossFragments checks the parts of the parameters that are exchanged in turn.
func (w *walker) crossFragments(t *table) {
	fragments, delay := t.byPath["local.fragments"], t.byPath["local.delay"]
	l := &w.cfg.Local
	e, _ := local.All.Lookup(l.Policy)
	if !e.Fragments || fragments.bad || delay.bad {
		return
	}
	switch {
	case l.Steps%l.Fragments != 0:
		w.fatal(w.nodeOf(t, fragments, w.tree), fragments.path, "let steps be a multiple of fragments",
			"%d fragments do not divide %d steps evenly", l.Fragments, l.Steps)
	case l.Delay > l.Steps/l.Fragments:
		w.fatal(w.nodeOf(t, delay, w.tree), delay.path, fmt.Sprintf("set %d or less", l.Steps/l.Fragments),
			"%d steps are more than steps / fragments: the next fragment would be exchanged before this one is taken over", l.Delay)
	}
}

// crossLocalRules refuses schemes that do not go with steps of the workers' own.
func (w *walker) crossLocalRules(policy *leaf, e local.Entry) {
	for i := range w.rows {
		phases, at := w.phasesOf(i)
		awaits := slices.IndexFunc(phases, func(ph Phase) bool { return ph.Until.Await.IsSet() })
		for k, ph := range phases {
			s, ok := scheme.All.Lookup(ph.Scheme)
			switch {
			case !ok:
			case s.CopiesOf(ph.Params) != scheme.Pulled:
				w.fatal(at.node, at.path, w.pulling(i)+", or a scheme whose workers pull",
					"with %s a worker adds its pushes to a copy of the parameters, but with local.policy %s it already works on "+
						"parameters of its own", s.Name, e.Name)
			case e.Weigh != local.BySamples && s.Means != nil && s.Means(ph.Params, 2) > 0:
				w.fatal(at.node, at.path, "choose a scheme without such means, such as bsp, ssp or asp",
					"%s keeps means of pushes, weighted by their samples, but with local.policy %s pushes do not count by samples", s.Name, e.Name)
			case w.cfg.Local.AveragesState() && s.Means != nil && s.Means(ph.Params, 2) > 0:
				w.fatal(at.node, at.path, "choose a scheme without such means, such as bsp, ssp or asp",
					"%s keeps means of pushes, but with local.state: average pushes have values of the optimizer's state", s.Name)
			case e.Fragments && s.Behind:
				w.fatal(at.node, at.path, "choose a scheme that waits for every push, such as bsp or ssp",
					"%s lets workers skip iterations, but with %s an iteration exchanges only some of the shards", s.Name, e.Name)
			case e.Fragments && s.Scope == scheme.PerServer:
				w.fatal(at.node, at.path, "choose a scheme that decides for each shard alone, such as bsp or ssp",
					"%s lets workers take turns with all shards of a server, but with %s an iteration exchanges only some of them", s.Name, e.Name)
			case e.Fragments && k == awaits:
				w.fatal(at.node, at.path, "give until iterations",
					"with %s the shards have clocks of their own, and would change at different iterations", e.Name)
			case ph.Until.Epochs > 0 && w.cfg.Local.Constant() == 0:
				w.fatal(at.node, at.path, "give until iterations, which count exchanges",
					"with %s nobody knows how many exchanges an epoch has", w.varying())
			case e.PerPush && s.Whole(ph.Common, ph.Params):
				w.report(Warning, policy.node, policy.path, "set "+w.inScheme(i, k, "scheme")+": asp, or ssp with a large bound",
					"the momentum of %s counts pushes, each of which is a version, but with sync[%d] (%s) a version is made of "+
						"the pushes of all workers", e.Name, i, s.Name)
			}
		}
		w.addWhole(i, e)
	}
}

// varying names what makes the number of steps between two exchanges vary.
func (w *walker) varying() string {
	if p := w.cfg.Local.Period; p.Changes() {
		return "local.period " + p.Name
	}
	return "local.policy " + w.cfg.Local.Policy
}

// addWhole makes a push count whole where the policy says so and the rule has no weight. A version of several pushes is their sum already.
func (w *walker) addWhole(i int, e local.Entry) {
	if e.Weigh != local.Whole || i >= len(w.cfg.Sync) {
		return
	}
	r := &w.cfg.Sync[i]
	for _, ph := range append([]*Phase{&r.Phase}, pointers(r.Then)...) {
		s, ok := scheme.All.Lookup(ph.Scheme)
		if _, several := ph.Params.(scheme.Several); ok && ph.Params != nil && !several && s.Weight != scheme.NoWeight &&
			ph.Common.Weight == 0 && !s.Whole(ph.Common, ph.Params) {
			ph.Common.Weight = 1
		}
	}
}

func pointers(list []Phase) (all []*Phase) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// LocalEnv is the run for the policy of a worker.
func (c *Config) LocalEnv(workers int) (local.Env, error) {
	inner, err := c.Update()
	return local.Env{Workers: workers, Rate: inner.Rate, WarmUp: c.Train.Schedule.WarmUp}, err
}

// InnerRuns returns the runs of a piece in the arena along which a worker takes steps of its own; none for statistics.
func (c *Config) InnerRuns(p *shard.Plan, piece *shard.Piece) []optim.Run {
	if p.Shards[piece.Shard].Stat {
		return nil
	}
	return c.trainedRuns(p, piece)
}
