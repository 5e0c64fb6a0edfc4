package idle

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

func matchesAny(glob string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return shard.Match(glob, name) })
}

// rules checks the rules of sync.
func (w *idler) rules() {
	names := w.names()
	taken := make([]bool, len(w.c.Sync))
	globs, on := w.c.Matches()
	for _, name := range names {
		for _, i := range shard.RulesOf(globs, on, name) {
			taken[i] = true
		}
	}
	for i := range w.c.Sync {
		r := &w.c.Sync[i]
		path := fmt.Sprintf("sync[%d]", i)
		if names != nil && !taken[i] && !settings.MatchesAll(r.Match) &&
			!slices.ContainsFunc(globs[:i], func(first string) bool { return settings.Covers(first, r.Match) }) {
			w.untaken(path+".match", r.Match, names)
		}
		phases := r.Phases()
		for k := range phases {
			t := keys.Bind(path, keys.RuleKeys, r)
			if len(phases) > 1 {
				t = keys.Bind(fmt.Sprintf("%s.schemes[%d]", path, k), keys.PhaseKeys, &phases[k])
			}
			e, known := keys.BindScheme(t, &phases[k].Params, phases[k].Scheme)
			if known {
				w.phase(t, e, &phases[k])
			}
		}
	}
}

// untaken warns of a rule that takes no parameter of this model. Package rules reports a rule that takes none of any model.
func (w *idler) untaken(path, glob string, names []string) {
	if matchesAny(glob, names) {
		w.at(path, "move it above those rules, or remove it",
			"%s takes no parameter of %s: earlier rules take all that it fits", diag.FormatString(glob), w.c.Model.Name)
		return
	}
	w.at(path, "remove it, or use one of these names: "+namesText(names), "%s fits no parameter of %s", diag.FormatString(glob),
		w.c.Model.Name)
}

// phase checks the keys of one scheme.
func (w *idler) phase(t *keys.Table, e scheme.Entry, ph *settings.Phase) {
	for _, d := range keys.BindParams(e.Params()) { // the table was bound to the current values and took them for defaults
		t.SetDefault(d.Spec.Path, d.Spec.Def)
	}
	for _, l := range t.Leaves {
		if v, ok := l.Ptr.(*int64); ok && l.Idle != "" {
			w.beyond(l, *v, ph)
		}
	}
	if l := t.ByPath["weight"]; ph.Common.Weight > 1 {
		w.warn(l, "set it to 1 or less, or leave it out for "+e.WeightText(),
			"with %s, each push changes the parameters %s times as much as a whole iteration", diag.FormatNumber(ph.Common.Weight),
			diag.FormatNumber(ph.Common.Weight))
	}
	if l := t.ByPath["until"]; l != nil {
		w.until(l, ph.Until)
	}
}

// beyond warns of a number of a scheme from which on, by its tag idle, it does nothing in this run.
func (w *idler) beyond(l *keys.Leaf, v int64, ph *settings.Phase) {
	what, then, _ := strings.Cut(l.Idle, ": ")
	switch n := int64(w.f.Workers); {
	case what == "lead":
		w.bound(l, float64(v))
	case what == "workers" && n > 0 && v > n:
		w.warn(l, fmt.Sprintf("set it below %d, or use scheme: bsp", n),
			"%d is more than the %s: %s", v, diag.FormatCount(float64(n), "worker"), then)
	case what == "pushes" && float64(v) > w.n.Pushes:
		w.warn(l, fmt.Sprintf("set it to %s or less", diag.FormatWhole(w.n.Pushes)),
			"%d pushes for a version, but the run has %s%s: it makes no version before its end", v,
			settings.AtMostUnless(w.n.Exact && ph.Exact(w.f.Workers)), diag.FormatCount(w.n.Pushes, "push"))
	}
}

// bound looks for a bound on the lead that no worker can reach. w.n.Exchanges is an even share for each worker; a faster worker may do
// more, up to all w.n.Pushes.
func (w *idler) bound(l *keys.Leaf, most float64) {
	switch {
	case most >= w.n.Pushes:
		w.warn(l, boundHint(w.n.Exchanges), "%s can never act: the run has %s, %s%s in all", diag.FormatWhole(most),
			w.n.ExchangesText(), settings.AtMostUnless(w.n.Exact), diag.FormatCount(w.n.Pushes, "push"))
	case w.n.Exact && most >= w.n.Exchanges:
		w.warn(l, boundHint(w.n.Exchanges), "%s is not below the run's %s: only a worker that does more than an even "+
			"share of them ever waits", diag.FormatWhole(most), w.n.ExchangesText())
	}
}

func boundHint(iterations float64) string {
	return fmt.Sprintf("set it below %s, or use scheme: asp, under which no worker waits", diag.FormatWhole(iterations))
}

// until looks for a scheme that would begin after the end of the run.
func (w *idler) until(l *keys.Leaf, u settings.Until) {
	if u == (settings.Until{}) {
		return
	}
	if u.Await.IsSet() {
		if rounds := float64(u.Await.Rounds); rounds >= w.n.Exchanges {
			w.at(l.Path, fmt.Sprintf("set rounds below %s", diag.FormatWhole(w.n.Exchanges)),
				"%s iterations in a row are not fewer than those of the run, which has %s: the scheme that follows never begins",
				diag.FormatWhole(rounds), w.n.ExchangesText())
		}
		return
	}
	clock, stop := float64(u.Iterations), w.c.Train.Stop
	switch {
	case u.Epochs > 0 && stop.Epochs > 0 && u.Epochs >= stop.Epochs:
		w.at(l.Path, fmt.Sprintf("set epochs below %s, or remove the scheme that follows", diag.FormatNumber(stop.Epochs)),
			"epoch %s is not before the end of the run, after %s: the scheme that follows never begins", diag.FormatNumber(u.Epochs),
			diag.FormatNumber(stop.Epochs))
		return
	case u.Epochs > 0 && w.f.Rows == 0:
		return
	case u.Epochs > 0:
		clock = w.c.Iterations(u.Epochs*float64(w.f.Rows), w.n.PerIteration*w.n.Turns, w.f)
		if !w.n.Exact && w.c.Train.BatchGlobal == 0 { // with more workers, the epoch and the run both have fewer iterations
			if math.IsInf(w.n.Samples, 1) || u.Epochs*float64(w.f.Rows) < w.n.Samples {
				return
			}
		}
	}
	if clock >= w.n.Exchanges {
		w.at(l.Path, fmt.Sprintf("set it below %s, or remove the scheme that follows", diag.FormatWhole(w.n.Exchanges)),
			"%v is not before the end of the run, which has %s: the scheme that follows never begins", u, w.n.ExchangesText())
	}
}
