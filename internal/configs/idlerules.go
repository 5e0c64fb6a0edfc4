package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

func paramNames(c *Config) []string { return workload.ParamNames(c.ModelSpec()) }

func matchesAny(glob string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return shard.Match(glob, name) })
}

// bounds are the keys of all schemes that bound how far a worker may lead.
var bounds = []string{"staleness", "tau", "s_l", "s_u", "s_min", "s_max", "hard_cap"}

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
		if names != nil && !taken[i] && !all(r.Match) &&
			!slices.ContainsFunc(globs[:i], func(first string) bool { return covers(first, r.Match) }) {
			w.untaken(path+".match", r.Match, names)
		}
		phases := r.Phases()
		for k := range phases {
			t := bind(path, ruleKeys, r)
			if len(phases) > 1 {
				t = bind(fmt.Sprintf("%s.schemes[%d]", path, k), phaseKeys, &phases[k])
			}
			e, known := bindScheme(t, &phases[k].Params, phases[k].Scheme)
			if known {
				w.phase(t, e, &phases[k])
			}
		}
	}
}

// all reports whether a glob fits every name. The last rule must, even if the rules before it take all parameters.
func all(glob string) bool { return glob != "" && strings.Trim(glob, "*") == "" }

// untaken warns of a rule that takes no parameter of this model. crossSync reports a rule that takes none of any model.
func (w *idler) untaken(path, glob string, names []string) {
	if matchesAny(glob, names) {
		w.at(path, "move it above those rules, or remove it",
			"%s takes no parameter of %s: earlier rules take all that it fits", formatString(glob), w.c.Model.Name)
		return
	}
	w.at(path, "remove it, or use one of these names: "+namesText(names), "%s fits no parameter of %s", formatString(glob), w.c.Model.Name)
}

// phase checks the keys of one scheme.
func (w *idler) phase(t *table, e scheme.Entry, ph *Phase) {
	for _, d := range paramsOf(e.Params()) { // the table was bound to the current values and took them for defaults
		t.setDefault(d.spec.path, d.spec.def)
	}
	for _, l := range t.leaves {
		if bound, ok := l.ptr.(*int64); ok && slices.Contains(bounds, lastName(l.path)) {
			w.bound(l, float64(*bound))
		}
	}
	if l := t.byPath["weight"]; ph.Common.Weight > 1 {
		w.warn(l, "set it to 1 or less, or leave it out for "+e.WeightText(),
			"with %s, each push changes the parameters %s times as much as a whole iteration", number(ph.Common.Weight), number(ph.Common.Weight))
	}
	switch p := ph.Params.(type) {
	case *scheme.DropParams:
		if n := int64(w.f.Workers); n > 0 && p.Required > n {
			w.warn(t.byPath["required"], fmt.Sprintf("set it below %d, or use scheme: bsp", n),
				"%d is more than the %s: an iteration waits for all pushes, and drops none", p.Required, times(float64(n), "worker"))
		}
	case *scheme.QuorumParams:
		if n := int64(w.f.Workers); n > 0 && p.Required > n {
			w.warn(t.byPath["required"], fmt.Sprintf("set it below %d, or use scheme: bsp", n),
				"%d is more than the %s: a version waits for the pushes of all", p.Required, times(float64(n), "worker"))
		}
	case *scheme.RennalaParams:
		if float64(p.Pushes) > w.n.Pushes {
			w.warn(t.byPath["pushes"], fmt.Sprintf("set it to %s or less", whole(w.n.Pushes)),
				"%d pushes for a version, but the run has at most %s: it makes no version before its end", p.Pushes, times(w.n.Pushes, "push"))
		}
	case *scheme.SoftsyncParams:
		if float64(p.Q) > w.n.Pushes {
			w.warn(t.byPath["q"], fmt.Sprintf("set it to %s or less", whole(w.n.Pushes)),
				"%d pushes for a version, but the run has %s%s: it makes no version before its end", p.Q, mostText(w.n.Exact),
				times(w.n.Pushes, "push"))
		}
	}
	if l := t.byPath["until"]; l != nil {
		w.until(l, ph.Until)
	}
}

// bound looks for a bound on the lead that no worker can reach. w.n.Exchanges is an even share for each worker; a faster worker may do
// more, up to all w.n.Pushes.
func (w *idler) bound(l *leaf, most float64) {
	switch {
	case most >= w.n.Pushes:
		w.warn(l, boundHint(w.n.Exchanges), "%s can never act: the run has %s, %s%s in all", whole(most),
			w.n.ExchangesText(), mostText(w.n.Exact), times(w.n.Pushes, "push"))
	case w.n.Exact && most >= w.n.Exchanges:
		w.warn(l, boundHint(w.n.Exchanges), "%s is not below the run's %s: only a worker that does more than an even "+
			"share of them ever waits", whole(most), w.n.ExchangesText())
	}
}

func boundHint(iterations float64) string {
	return fmt.Sprintf("set it below %s, or use scheme: asp, under which no worker waits", whole(iterations))
}

// until looks for a scheme that would begin after the end of the run.
func (w *idler) until(l *leaf, u Until) {
	if u == (Until{}) {
		return
	}
	if u.Await.IsSet() {
		if rounds := float64(u.Await.Rounds); rounds >= w.n.Exchanges {
			w.at(l.path, fmt.Sprintf("set rounds below %s", whole(w.n.Exchanges)),
				"%s iterations in a row are not fewer than those of the run, which has %s: the scheme that follows never begins",
				whole(rounds), w.n.ExchangesText())
		}
		return
	}
	clock, stop := float64(u.Iterations), w.c.Train.Stop
	switch {
	case u.Epochs > 0 && stop.Epochs > 0 && u.Epochs >= stop.Epochs:
		w.at(l.path, fmt.Sprintf("set epochs below %s, or remove the scheme that follows", number(stop.Epochs)),
			"epoch %s is not before the end of the run, after %s: the scheme that follows never begins", number(u.Epochs), number(stop.Epochs))
		return
	case u.Epochs > 0 && w.f.Rows == 0:
		return
	case u.Epochs > 0:
		clock = w.c.iterations(u.Epochs*float64(w.f.Rows), w.n.PerIteration*w.n.Turns, w.f)
		if !w.n.Exact && w.c.Train.BatchGlobal == 0 { // with more workers, the epoch and the run both have fewer iterations
			if math.IsInf(w.n.Samples, 1) || u.Epochs*float64(w.f.Rows) < w.n.Samples {
				return
			}
		}
	}
	if clock >= w.n.Exchanges {
		w.at(l.path, fmt.Sprintf("set it below %s, or remove the scheme that follows", whole(w.n.Exchanges)),
			"%v is not before the end of the run, which has %s: the scheme that follows never begins", u, w.n.ExchangesText())
	}
}
