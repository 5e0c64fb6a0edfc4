package configs

import (
	"cmp"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"fluentps/ps/scheme"
)

// The keys of until where a scheme waits for a straggler.
var (
	stragglerSpec = spec{path: "straggler", words: func() []string { return []string{scheme.StragglerShows, scheme.StragglerGone} }}
	factorSpec    = spec{path: "factor", span: aboveTo(1, 1e9)}
	roundsSpec    = spec{path: "rounds", span: from(1, 1e9)}
	awaitKeys     = []string{"straggler", "factor", "rounds"}
)

// isAwait says whether the keys of an until are meant to be those of a straggler.
func isAwait(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if len(Nearest(n.Content[i].Value, awaitKeys)) > 0 {
			return true
		}
	}
	return false
}

// readAwait reads {straggler: shows, factor: 1.5, rounds: 5}; the last two have defaults.
func readAwait(ptr *scheme.Await, n *yaml.Node) *problem {
	const hint = "write {straggler: shows} or {straggler: gone}, with factor and rounds where their defaults do not suit"
	a := scheme.Await{Factor: scheme.AwaitFactor, Rounds: scheme.AwaitRounds}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], deref(n.Content[i+1])
		var p *problem
		switch {
		case seen[key.Value]:
			p = problemf(hint, "%s stands there twice", clip(key.Value))
		case key.Value == stragglerSpec.path:
			p = (&leaf{spec: &stragglerSpec, path: key.Value}).readString(&a.Straggler, value, false)
		case key.Value == factorSpec.path:
			p = readFloat(&leaf{spec: &factorSpec, path: key.Value}, &a.Factor, value)
		case key.Value == roundsSpec.path:
			p = readInt(&leaf{spec: &roundsSpec, path: key.Value}, &a.Rounds, value)
		default:
			value, p = key, problemf(didYouMean(key.Value, awaitKeys), "unknown key %s", clip(key.Value))
		}
		if seen[key.Value] = true; p != nil {
			if p.at, p.hint = value, cmp.Or(p.hint, hint); value != key && key.Value != stragglerSpec.path {
				p.msg = key.Value + ": " + p.msg
			}
			return p
		}
	}
	if !a.IsSet() {
		return problemf(hint, "factor and rounds say which worker is a straggler, but the key straggler is missing")
	}
	*ptr = a
	return nil
}

func formatAwait(a scheme.Await) string {
	return fmt.Sprintf("{straggler: %s, factor: %s, rounds: %d}", a.Straggler, number(a.Factor), a.Rounds)
}

// awaitForm is the schema of an until that waits for a straggler.
func awaitForm() *form {
	words, factor, rounds := &form{Enum: stragglerSpec.words()}, &form{}, &form{}
	factor.number("number", &leaf{spec: &factorSpec})
	rounds.number("integer", &leaf{spec: &roundsSpec})
	return &form{Type: "object", Properties: map[string]any{"straggler": words, "factor": factor, "rounds": rounds},
		Required: []string{"straggler"}, Further: false}
}

// Awaits says whether the schemes of the rule wait for stragglers.
func (r *Rule) Awaits() bool { return r.Until.Await.IsSet() }

// Awaits lists what the schemes of the rules that wait for stragglers wait for, in turn; all these rules have the same list. nil: none
// waits.
func (c *Config) Awaits() (awaits []scheme.Await) {
	i := slices.IndexFunc(c.Sync, func(r Rule) bool { return r.Awaits() })
	if i < 0 {
		return nil
	}
	for _, ph := range c.Sync[i].Phases() {
		awaits = append(awaits, ph.Until.Await)
	}
	return awaits
}

// SkipsAhead says per turn whether workers skip to the iteration that announces the end of the turn. They do if no scheme of the run bounds
// their lead then: they may be far apart, and no scheme promises how old the parameters are that they read.
func (c *Config) SkipsAhead() (skips []bool) {
	for k := range c.Awaits() {
		skips = append(skips, !slices.ContainsFunc(c.Sync, func(r Rule) bool {
			phases := r.Phases()
			if r.Awaits() {
				phases = phases[k : k+1]
			}
			return slices.ContainsFunc(phases, func(ph Phase) bool {
				e, _ := scheme.All.Lookup(ph.Scheme)
				_, bounded := e.LeadMax(ph.Params)
				return bounded
			})
		}))
	}
	return skips
}

// CheckAwaits fails if schemes wait for stragglers among so few workers that a median says nothing.
func (c *Config) CheckAwaits(workers int) error {
	if len(c.Awaits()) == 0 || workers >= scheme.AwaitWorkersMin {
		return nil
	}
	return fmt.Errorf("sync: until: {straggler: %s} compares a worker with the median of all workers, which needs at "+
		"least %d of them, and the run has %d; take more workers, or let the scheme end at an iteration or an epoch",
		c.Awaits()[0].Straggler, scheme.AwaitWorkersMin, workers)
}

// crossAwaits checks what the rules whose schemes wait for stragglers need. They change at one iteration, which each worker announces with
// its pushes, so each worker must compute it. The lead shard lets workers into it, so they must pull it before every iteration.
func (w *walker) crossAwaits() {
	var first *Rule
	for i := range w.rows {
		if phases, at := w.phasesOf(i); phases != nil && w.cfg.Sync[i].Awaits() {
			r := &w.cfg.Sync[i]
			if first == nil {
				first = r
			} else if !slices.EqualFunc(first.Phases(), r.Phases(), func(a, b Phase) bool { return a.Until == b.Until }) {
				w.fatal(at.node, at.path, "give the schemes of both rules the same until, one by one",
					"waits for other stragglers than match %q, but the lead shard looks for stragglers once for the run", first.Match)
			}
		}
	}
	if first == nil {
		return
	}
	w.crossSkips(first)
}

// crossSkips refuses batches that are dealt anew by the times of all workers, if the end of a scheme may send workers past iterations.
func (w *walker) crossSkips(first *Rule) {
	whole := len(w.rows) == len(w.cfg.Sync)
	for i := range w.rows {
		phases, _ := w.phasesOf(i)
		whole = whole && phases != nil
	}
	if !whole || !w.cfg.DealsBatches() || !slices.Contains(w.cfg.SkipsAhead(), true) {
		return
	}
	_, at := w.phasesOf(slices.IndexFunc(w.cfg.Sync, func(r Rule) bool { return r.Awaits() }))
	w.fatal(at.node, at.path, "set work.policy: fixed, or let schemes with a bound on the lead wait for stragglers, "+
		"such as ssp in the place of asp",
		"workers that are behind skip iterations when match %q changes, but work.policy %s deals batches by the times of "+
			"all iterations", first.Match, w.cfg.Work.Policy)
}
