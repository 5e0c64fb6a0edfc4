package rules

import (
	"fmt"

	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/local"
	"fluentps/ps/scheme"
)

// crossNumbers checks numbers that divide others, and makes pushes count whole where the policy says so.
func (w *checks) crossNumbers(t *keys.Table) {
	for _, path := range []string{"local.policy", "local.steps", "local.host_steps", "local.fragments"} {
		if t.ByPath[path].Bad {
			return
		}
	}
	l := &w.Config.Local
	e, _ := local.All.Lookup(l.Policy)
	if !l.IsSet() {
		return
	}
	w.crossFragments(t)
	if at := t.ByPath["local.host_steps"]; w.Config.Cluster.Hierarchy != settings.HierarchyNone {
		if l.Steps%l.HostSteps != 0 {
			w.Fatal(w.NodeOf(t, at, w.Tree), at.Path, "let steps be a multiple of host_steps",
				"%d steps do not divide %d steps evenly", l.HostSteps, l.Steps)
		}
		if e.Fragments && l.Constant()%l.HostSteps != 0 {
			w.Fatal(w.NodeOf(t, at, w.Tree), at.Path, "let steps / fragments be a multiple of host_steps",
				"%d steps do not divide the %d between two fragments evenly", l.HostSteps, l.Constant())
		}
	}
	if !t.ByPath["sync"].Bad {
		for i := range w.RuleTables {
			w.addWhole(i, e)
		}
	}
}

// crossFragments checks the parts of the parameters that are exchanged in turn.
func (w *checks) crossFragments(t *keys.Table) {
	fragments, delay := t.ByPath["local.fragments"], t.ByPath["local.delay"]
	l := &w.Config.Local
	e, _ := local.All.Lookup(l.Policy)
	if !e.Fragments || fragments.Bad || delay.Bad {
		return
	}
	switch {
	case l.Steps%l.Fragments != 0:
		w.Fatal(w.NodeOf(t, fragments, w.Tree), fragments.Path, "let steps be a multiple of fragments",
			"%d fragments do not divide %d steps evenly", l.Fragments, l.Steps)
	case l.Delay > l.Steps/l.Fragments:
		w.Fatal(w.NodeOf(t, delay, w.Tree), delay.Path, fmt.Sprintf("set %d or less", l.Steps/l.Fragments),
			"%d steps are more than steps / fragments: the next fragment would be exchanged before this one is taken over", l.Delay)
	}
}

// addWhole makes a push count whole where the policy says so and the rule has no weight. A version of several pushes is their sum already.
func (w *checks) addWhole(i int, e local.Entry) {
	if e.Weigh != local.Whole || i >= len(w.Config.Sync) {
		return
	}
	r := &w.Config.Sync[i]
	for _, ph := range append([]*settings.Phase{&r.Phase}, pointers(r.Then)...) {
		s, ok := scheme.All.Lookup(ph.Scheme)
		if _, several := ph.Params.(scheme.Several); ok && ph.Params != nil && !several && s.Weight != scheme.NoWeight &&
			ph.Common.Weight == 0 && !s.Whole(ph.Common, ph.Params) {
			ph.Common.Weight = 1
		}
	}
}

func pointers(list []settings.Phase) (all []*settings.Phase) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}
