package rules

import (
	"fmt"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// crossAwaits checks what the rules whose schemes wait for stragglers need. They change at one iteration, which each worker announces with
// its pushes, so each worker must compute it. The lead shard lets workers into it, so they must pull it before every iteration.
func (w *checks) crossAwaits() {
	var first *settings.Rule
	for i := range w.RuleTables {
		if phases, at := w.PhasesOf(i); phases != nil && w.Config.Sync[i].Awaits() {
			r := &w.Config.Sync[i]
			if first == nil {
				first = r
			} else if !slices.EqualFunc(first.Phases(), r.Phases(), func(a, b settings.Phase) bool { return a.Until == b.Until }) {
				w.Fatal(at.Node, at.Path, "give the schemes of both rules the same until, one by one",
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
func (w *checks) crossSkips(first *settings.Rule) {
	whole := len(w.RuleTables) == len(w.Config.Sync)
	for i := range w.RuleTables {
		phases, _ := w.PhasesOf(i)
		whole = whole && phases != nil
	}
	if !whole || !w.Config.DealsBatches() || !slices.Contains(w.Config.SkipsAhead(), true) {
		return
	}
	_, at := w.PhasesOf(slices.IndexFunc(w.Config.Sync, func(r settings.Rule) bool { return r.Awaits() }))
	w.Fatal(at.Node, at.Path, "set work.policy: fixed, or let schemes with a bound on the lead wait for stragglers, "+
		"such as ssp in the place of asp",
		"workers that are behind skip iterations when match %q changes, but work.policy %s deals batches by the times of "+
			"all iterations", first.Match, w.Config.Work.Policy)
}

// crossSync looks for parameters without a rule, and for rules without a parameter.
func (w *checks) crossSync(sync *keys.Leaf, root *yaml.Node) {
	var earlier []*keys.Table
	whole, unclear := false, false
	var everything []int // servers on which some rule takes all parameters
	for _, t := range w.RuleTables {
		match, servers := t.ByPath["match"], t.ByPath["servers"]
		if match.Bad || servers.Bad || !w.crossServers(servers) {
			unclear = true
			continue
		}
		glob, on := *match.Ptr.(*string), *servers.Ptr.(*[]int)
		for _, e := range earlier {
			if first := *e.ByPath["match"].Ptr.(*string); settings.Covers(first, glob) && w.within(on, *e.ByPath["servers"].Ptr.(*[]int)) {
				w.Report(diag.Warning, match.Node, match.Path, "move it above that rule, or remove it",
					"can never match: %s takes %s first", e.Prefix, diag.FormatString(first))
				break
			}
		}
		earlier = append(earlier, t)
		if settings.MatchesAll(glob) {
			whole = whole || on == nil
			everything = append(everything, on...)
		}
	}
	whole = whole || w.servesAll(everything)
	if !whole && !unclear && !(sync.Bad && len(w.RuleTables) == 0) {
		at := sync.Key
		if at == nil {
			at = root
		}
		what, hint := "no rule takes every parameter", `add a last rule: {match: "*", scheme: bsp}`
		if len(everything) > 0 {
			what, hint = what+" on every server", hint+", without servers"
		}
		w.Fatal(at, sync.Path, hint, "%s", what)
	}
}

// crossServers checks that the servers of a rule exist. With mixed placement all workers serve too, so their number is known only when
// the run starts.
func (w *checks) crossServers(l *keys.Leaf) bool {
	list, most := *l.Ptr.(*[]int), w.Config.Cluster.Servers
	for i, m := range list {
		switch {
		case most < 1: // which is told already
			return false
		case m >= most && w.Config.Cluster.Placement != "mixed":
			w.Fatal(l.Node, l.Path, fmt.Sprintf("name servers from 0 to %d, or raise cluster.servers", most-1),
				"there is no server %d: cluster.servers is %d", m, most)
			return false
		case slices.Contains(list[:i], m):
			w.Fatal(l.Node, l.Path, "name each server once", "server %d is listed twice", m)
			return false
		}
	}
	return true
}

// within reports whether servers is a subset of others; nil stands for all servers.
func (w *checks) within(servers, others []int) bool {
	switch {
	case others == nil:
		return true
	case servers == nil:
		return w.servesAll(others)
	}
	return !slices.ContainsFunc(servers, func(m int) bool { return !slices.Contains(others, m) })
}

// servesAll reports whether the list has every server.
func (w *checks) servesAll(list []int) bool {
	for m := range w.Config.Cluster.Servers {
		if !slices.Contains(list, m) {
			return false
		}
	}
	return w.Config.Cluster.Servers > 0 && w.Config.Cluster.Placement != "mixed"
}

// crossRotations refuses two rules of a scheme that decides for a whole server if their keys differ: the server has one rotation for the
// shards of both rules.
func (w *checks) crossRotations() {
	first := map[string]int{}
	for i, r := range w.Config.Sync {
		if e, ok := scheme.All.Lookup(r.Scheme); !ok || e.Scope != scheme.PerServer {
			continue
		}
		k, seen := first[r.Scheme]
		if !seen {
			first[r.Scheme] = i
			continue
		}
		if other := w.Config.Sync[k]; r.Common != other.Common || !reflect.DeepEqual(r.Params, other.Params) {
			l := w.RuleTables[i].ByPath["scheme"]
			w.Fatal(l.Node, l.Path, "give both rules the same keys",
				"%s has other keys than in sync[%d], but a server has one rotation for all its %s shards", r.Scheme, k, r.Scheme)
		}
	}
}
