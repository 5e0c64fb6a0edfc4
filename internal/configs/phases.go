package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// phasedRule reads a rule with a list of schemes.
func (w *walker) phasedRule(r *settings.Rule, path string, n *yaml.Node) bool {
	var list []settings.Phase
	t := keys.BindPhased(path, r, &list)
	w.RuleTables = append(w.RuleTables, t)
	for _, item := range diag.Child(n, "schemes").Content {
		if e, ok := scheme.All.Lookup(diag.ValueOf(diag.Deref(item), "scheme")); ok && e.Push != "" {
			t.SetDefault("push", e.Push)
		}
	}
	w.pushesChanges(t)
	if push := cmp.Or(diag.ValueOf(n, "push"), t.ByPath["push"].Def); push == settings.PushDelta {
		t.SetDefault("update", settings.UpdateAdd)
		t.Deltas = !w.takesSteps()
	}
	before := len(w.Diags)
	w.mapping(t, "", n, w.unknownBesideSchemes)
	w.finish(t, n)
	if len(w.Diags) > before {
		return false
	}
	for i := range list {
		e, _ := scheme.All.Lookup(list[i].Scheme)
		w.crossPush(t, e, r)
	}
	r.Phase, r.Then = list[0], list[1:]
	return len(w.Diags) == before
}

// unknownBesideSchemes reports a key of a rule that belongs in one of its schemes, or that is unknown.
func (w *walker) unknownBesideSchemes(t *keys.Table, section string, key *yaml.Node) {
	if slices.Contains(keys.Bind("", keys.PhaseKeys, &settings.Phase{}).Below(""), key.Value) || len(keys.SchemesWith(key.Value)) > 0 {
		w.Misshapen(key, diag.Join(t.Prefix, key.Value), "move it into one of them, as in "+keys.SchemesExample, "belongs in one of the schemes")
		return
	}
	w.unknownKey(t, section, key)
}

// phases reads the list of schemes of a rule. It reports whether none has a problem.
func (w *walker) phases(ptr *[]settings.Phase, l *keys.Leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, keys.SchemesExample)
	if ok && len(items) < 2 {
		first := "bsp"
		if len(items) == 1 {
			if e, known := scheme.All.Lookup(diag.ValueOf(diag.Deref(items[0]), "scheme")); known {
				first = e.Name
			}
		}
		w.Misshapen(n, l.Path, "write scheme: "+first+" in place of schemes, or "+keys.SchemesExample, "want at least 2 schemes, got %d",
			len(items))
		ok = false
	}
	if !ok {
		return false
	}
	*ptr = make([]settings.Phase, len(items))
	before := len(w.Diags)
	for i := 0; i < len(items) && !w.Full; i++ {
		path, item := fmt.Sprintf("%s[%d]", l.Path, i), diag.Deref(items[i])
		if item.Kind != yaml.MappingNode {
			w.Misshapen(item, path, "write {scheme: bsp, until: 100}", "want a scheme with its keys, got %s", diag.Describe(item))
			continue
		}
		w.crossUntil(w.phase(&(*ptr)[i], path, item, w.RuleTables[len(w.RuleTables)-1].Deltas), *ptr, i, item)
	}
	return len(w.Diags) == before
}

// phase reads one of the schemes. delta is true if the rule pushes deltas.
func (w *walker) phase(ph *settings.Phase, path string, n *yaml.Node, delta bool) *keys.Table {
	t := keys.Bind(path, keys.PhaseKeys, ph)
	name := diag.ValueOf(n, "scheme")
	e, known := keys.BindScheme(t, &ph.Params, name)
	if delta {
		addWhole(t, e, n)
	}
	before := len(w.Diags)
	w.mapping(t, "", n, func(t *keys.Table, _ string, key *yaml.Node) {
		if key.Value == "match" || key.Value == "servers" || key.Value == "push" || key.Value == "update" {
			w.Misshapen(key, diag.Join(path, key.Value), "move it beside schemes", "is one for all schemes of a rule")
			return
		}
		w.unknownInRule(t, key, name, known)
	})
	w.finish(t, n)
	if !known {
		return t
	}
	if e.Scope == scheme.PerServer {
		w.schemeError(t, e, errServerScope)
	}
	if e.CopiesOf(ph.Params) != scheme.Pulled {
		way := "set scheme: ssp"
		if t.ByPath["cache"] != nil {
			way = "set cache: false"
		}
		w.schemeError(t, e, fmt.Errorf("%w; give it a rule of its own, or %s", errCopies, way))
	}
	w.checkScheme(t, e, ph, before)
	return t
}

// crossUntil checks that each phase except the last has an end, and that it ends later than the phase before.
func (w *walker) crossUntil(t *keys.Table, all []settings.Phase, i int, n *yaml.Node) {
	until := t.ByPath["until"]
	last := i == len(all)-1
	awaits := all[0].Until.Await.IsSet()
	switch {
	case until.Bad:
	case i > 0 && until.Key != nil && all[0].Until != (settings.Until{}) && awaits != all[i].Until.Await.IsSet():
		what := fmt.Sprintf("waits for a straggler, but the first scheme of the rule ends at %v", all[0].Until)
		if awaits {
			what = fmt.Sprintf("%v is another kind of end than that of the first scheme of the rule, which waits for a straggler", all[i].Until)
		}
		w.Fatal(until.Node, until.Path, "write straggler in each until of the rule, or in none", "%s", what)
	case awaits && (!last || until.Key != nil):
		if until.Key == nil {
			w.Fatal(n, until.Path, "write until: {straggler: gone}, or another end of this kind", "is missing: another scheme follows")
		}
	case last && until.Key != nil:
		w.Fatal(until.Key, until.Path, "remove it, or add the scheme that follows", "ends the last scheme, and none follows")
	case !last && until.Key == nil:
		w.Fatal(n, until.Path, "write until: 100, until: {epochs: 2}, or until: {straggler: shows}", "is missing: another scheme follows")
	case i > 0 && !last:
		was, is := all[i-1].Until, all[i].Until
		if was.Epochs > 0 && is.Epochs > 0 && is.Epochs <= was.Epochs || was.Iterations > 0 && is.Iterations > 0 &&
			is.Iterations <= was.Iterations {
			w.Fatal(until.Node, until.Path, "let each scheme end later than the one before", "%v is not after %v, where it begins", is, was)
		}
	}
}

// errCopies refuses a scheme whose workers keep copies: at a change of scheme, every worker must pull.
var errCopies = errors.New("scheme: lets workers keep copies, but at a change of scheme all workers pull")

// errServerScope refuses a scheme that schedules the link of a server.
var errServerScope = errors.New("scheme: decides for all shards of its rule on a server, and cannot take turns " +
	"with another; give it a rule of its own")
