package configs

import (
	"fmt"

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

// crossNumbers checks numbers that divide others, and makes pushes count whole where the policy says so.
func (w *walker) crossNumbers(t *table) {
	for _, path := range []string{"local.policy", "local.steps", "local.host_steps", "local.fragments"} {
		if t.byPath[path].bad {
			return
		}
	}
	l := &w.cfg.Local
	e, _ := local.All.Lookup(l.Policy)
	if !l.IsSet() {
		return
	}
	w.crossFragments(t)
	if at := t.byPath["local.host_steps"]; w.cfg.Cluster.Hierarchy != HierarchyNone {
		if l.Steps%l.HostSteps != 0 {
			w.fatal(w.nodeOf(t, at, w.tree), at.path, "let steps be a multiple of host_steps",
				"%d steps do not divide %d steps evenly", l.HostSteps, l.Steps)
		}
		if e.Fragments && l.Constant()%l.HostSteps != 0 {
			w.fatal(w.nodeOf(t, at, w.tree), at.path, "let steps / fragments be a multiple of host_steps",
				"%d steps do not divide the %d between two fragments evenly", l.HostSteps, l.Constant())
		}
	}
	if !t.byPath["sync"].bad {
		for i := range w.rows {
			w.addWhole(i, e)
		}
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
