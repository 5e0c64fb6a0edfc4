package rules

import (
	"slices"
	"sync"

	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/named"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/terms"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// runFacts are what holds of a run and follows from several keys, or from none that chooses an entry. A fact is unknown
// where one of its keys has a problem.
var runFacts = []struct {
	fact  terms.Fact
	keys  []string
	holds func(c *settings.Config) bool
}{
	{terms.LocalSteps, []string{"local.policy"}, func(c *settings.Config) bool { return c.Local.IsSet() }},
	{terms.Unequal, []string{"work.policy", "work.shares"}, (*settings.Config).WeighsSamples},
	{terms.Shares, []string{"work.policy", "work.shares"}, func(c *settings.Config) bool { return len(c.Work.Shares) > 0 }},
	{terms.Stateless, nil, func(c *settings.Config) bool { return len(optim.StateNames(c.Train.Optimizer.Name)) == 0 }},
	{terms.Varies, nil, func(c *settings.Config) bool { return c.Local.Constant() == 0 }},
}

// axis is a key that chooses an entry of a table, and what the entry states.
type axis struct {
	key   string
	keys  []string                                        // beside it: none of the entry's terms is told where one of them has a problem
	facts func(name string) (possible, held []terms.Fact) // of any entry of the table, and of this one
	terms func(name string) []terms.Term
}

// stating is an entry that states what holds of a run that chooses it, and what it does not go with.
type stating interface {
	named.Entry
	Facts() []terms.Fact
	Terms() []terms.Term
}

// axes are those with terms, in the order in which errors at one place are told.
var axes = []axis{
	axisOf("payload.push", &payload.All),
	axisOf("work.policy", &work.All),
	axisOf("local.period.name", &local.Periods, "local.policy", "local.steps", "local.host_steps", "local.fragments"),
	axisOf("local.policy", &local.All, "local.steps", "local.host_steps", "local.fragments"),
	axisOf("send.order", &send.All),
}

func axisOf[E stating](key string, all *named.Table[E], keys ...string) axis {
	every := sync.OnceValue(func() (facts []terms.Fact) {
		for _, e := range *all {
			facts = append(facts, e.Facts()...)
		}
		return facts
	})
	return axis{key: key, keys: keys,
		facts: func(name string) (possible, held []terms.Fact) {
			e, _ := all.Lookup(name)
			return every(), e.Facts()
		},
		terms: func(name string) []terms.Term {
			if e, known := all.Lookup(name); known {
				return e.Terms()
			}
			return nil
		}}
}

// chosen is the name of the entry that an axis chooses; ok is false where that is not known.
func (h *holder) chosen(a axis) (name string, ok bool) {
	l := h.t.ByPath[a.key]
	return *l.Ptr.(*string), !l.Bad
}

// newHolder finds out what holds of a run and of the schemes of its rules.
func (w *checks) newHolder(t *keys.Table) *holder {
	h := &holder{checks: w, t: t, facts: map[terms.Fact]bool{}}
	bad := func(path string) bool { return t.ByPath[path].Bad }
	for _, f := range runFacts {
		if !slices.ContainsFunc(f.keys, bad) {
			h.facts[f.fact] = f.holds(w.Config)
		}
	}
	for _, a := range axes {
		if name, known := h.chosen(a); known {
			possible, held := a.facts(name)
			for _, f := range possible {
				h.facts[f] = h.facts[f] || slices.Contains(held, f)
			}
		}
	}
	statistics := workload.Statistics(w.Config.ModelSpec())
	h.facts[terms.BatchNorm] = len(statistics) > 0
	if !t.ByPath["sync"].Bad {
		globs, on := w.Config.Matches()
		h.takes = map[int]bool{}
		for _, name := range statistics {
			for _, i := range shard.RulesOf(globs, on, name) {
				h.takes[i] = true
			}
		}
	}
	h.rules = make([]ruled, len(w.RuleTables))
	for i := range h.rules {
		r := &h.rules[i]
		r.phases, r.at = w.PhasesOf(i)
		for k := range r.phases {
			r.traits = append(r.traits, h.traitsOf(i, k, r.phases))
		}
	}
	h.facts[terms.Straggling] = h.firstAwait() != nil
	return h
}

// schemes holds the run to the terms of its schemes.
func (h *holder) schemes() {
	for i := range h.rules {
		for k, ph := range h.rules[i].phases {
			if e, ok := scheme.All.Lookup(ph.Scheme); ok {
				h.hold(e.Terms(), e.Name, "", i, k)
			}
		}
	}
}

// policies holds the run to the terms of everything else that it chooses by name.
func (h *holder) policies() {
	for _, a := range axes {
		name, known := h.chosen(a)
		if !known || slices.ContainsFunc(a.keys, func(path string) bool { return h.t.ByPath[path].Bad }) {
			continue
		}
		h.hold(a.terms(name), name, a.key, 0, 0)
	}
}
