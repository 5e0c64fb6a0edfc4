package configs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// items returns the mappings of a list of rules or faults; ok is false if the list itself is wrong.
func (w *walker) items(l *keys.Leaf, n *yaml.Node, example string) (items []*yaml.Node, ok bool) {
	if n.Kind != yaml.SequenceNode {
		w.Misshapen(n, l.Path, "write it as a list: "+example, "want a list, got %s", diag.Describe(n))
		return nil, false
	}
	if len(n.Content) > keys.ItemsMax {
		w.Misshapen(n, l.Path, "shorten the list", "%d items, more than the %d allowed", len(n.Content), keys.ItemsMax)
		return nil, false
	}
	return n.Content, true
}

// rules reads the rules of sync. It reports whether none has a problem.
func (w *walker) rules(ptr *[]settings.Rule, l *keys.Leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, `[{match: "*", scheme: bsp}]`)
	if !ok {
		return false
	}
	*ptr = make([]settings.Rule, len(items))
	for i := range items {
		if w.Full {
			return false
		}
		ok = w.rule(&(*ptr)[i], fmt.Sprintf("%s[%d]", l.Path, i), diag.Deref(items[i])) && ok
	}
	return ok
}

// rule reads one sync rule. The scheme is looked up first, for its name decides which keys there are.
func (w *walker) rule(r *settings.Rule, path string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		w.Misshapen(n, path, `write {match: "*", scheme: bsp}`, "want a rule, got %s", diag.Describe(n))
		return false
	}
	if diag.Child(n, "schemes") != nil {
		return w.phasedRule(r, path, n)
	}
	t := keys.Bind(path, keys.RuleKeys, r)
	w.RuleTables = append(w.RuleTables, t)
	entry, known := keys.BindScheme(t, &r.Params, diag.ValueOf(n, "scheme"))
	if known {
		if entry.Push != "" {
			t.SetDefault("push", entry.Push)
		}
		w.pushesChanges(t)
		if push := cmp.Or(diag.ValueOf(n, "push"), t.ByPath["push"].Def); push == settings.PushDelta {
			t.SetDefault("update", settings.UpdateAdd)
			t.Deltas = true
			if !w.takesSteps() {
				addWhole(t, entry, n)
			}
		}
	}
	before := len(w.Diags)
	w.mapping(t, "", n, func(t *keys.Table, section string, key *yaml.Node) {
		w.unknownInRule(t, key, diag.ValueOf(n, "scheme"), known)
	})
	w.finish(t, n)
	if !known {
		return false
	}
	w.crossPush(t, entry, r)
	w.crossCache(t, entry, r)
	w.checkScheme(t, entry, &r.Phase, before)
	return len(w.Diags) == before
}

// checkScheme holds the keys of a scheme to what it says of them; before is the number of problems before its keys
// were read.
func (w *walker) checkScheme(t *keys.Table, e scheme.Entry, ph *settings.Phase, before int) {
	if err := ph.Params.Check(); err != nil {
		w.schemeError(t, e, err)
	}
	if len(w.Diags) == before {
		if err := tryScheme(e, ph); err != nil {
			w.schemeError(t, e, err)
		}
	}
}

// addWhole makes 1 the default of weight where the scheme adds deltas as they are, each as a version.
func addWhole(t *keys.Table, e scheme.Entry, n *yaml.Node) {
	if e.Weight == scheme.DeltaWhole && diag.ValueOf(n, "fold") != string(scheme.FoldRank) {
		t.SetDefault("weight", "1")
	}
}

// crossPush holds what a push carries to what the scheme and the update need.
func (w *walker) crossPush(t *keys.Table, e scheme.Entry, r *settings.Rule) {
	push, update := t.ByPath["push"], t.ByPath["update"]
	switch {
	case push.Bad || update.Bad:
	case e.Push != "" && r.Push != e.Push:
		w.Fatal(push.Node, push.Path, "remove it", "%s takes pushes of kind %s, not %s", e.Name, e.Push, r.Push)
	case w.takesSteps() && (r.Push != settings.PushDelta || r.Update != settings.UpdateAdd):
		at := push
		if r.Push == settings.PushDelta {
			at = update
		}
		w.Fatal(at.Node, at.Path, "remove it",
			"workers that take steps of their own (local) push what these changed, and local.outer says what the servers do with it")
	case (r.Push == settings.PushDelta) != (r.Update == settings.UpdateAdd):
		at := update
		if at.Node == nil {
			at = push
		}
		w.Fatal(at.Node, at.Path, "write push: gradient with update: optimizer, or push: delta with update: add",
			"push: %s does not go with update: %s", r.Push, r.Update)
	}
}

// crossCache demands deltas where workers add their own updates to their copies: they do not know what an optimizer on the
// server makes of a gradient.
func (w *walker) crossCache(t *keys.Table, e scheme.Entry, r *settings.Rule) {
	cache, push := t.ByPath["cache"], t.ByPath["push"]
	if cache == nil || cache.Bad || push.Bad || e.CopiesOf(r.Params) == scheme.Pulled || r.Push == settings.PushDelta {
		return
	}
	w.Fatal(cache.Node, cache.Path, "add push: delta",
		"a worker adds its own updates to its copy, and with push: %s it does not know them", r.Push)
}

// tryScheme builds the scheme for two workers and throws it away, because only its constructor knows which keys contradict
// each other.
func tryScheme(e scheme.Entry, r *settings.Phase) error {
	if _, bounded := e.LeadMax(r.Params); !bounded && r.Common.Fold == scheme.FoldRank {
		return fmt.Errorf("fold: rank needs a bound on the lead, and %s has none: staged pushes would grow without "+
			"limit; use fold: arrival, or scheme: ssp", e.Name)
	}
	env := scheme.Env{Workers: 2, Shards: []int32{0}, Servers: 1}
	_, err := e.New(env, r.Common, r.Params)
	return err
}

var keyed = regexp.MustCompile(`^([a-z_]+): (.*)$`)

// schemeError places an error of the form "scheme: key: what; hint" at that key.
func (w *walker) schemeError(t *keys.Table, e scheme.Entry, err error) {
	msg := strings.TrimPrefix(err.Error(), e.Name+": ")
	at := t.ByPath["scheme"]
	if m := keyed.FindStringSubmatch(msg); m != nil && t.ByPath[m[1]] != nil {
		l := t.ByPath[m[1]]
		if l.Bad {
			return // its problem is told already
		}
		l.Bad, msg = true, m[2]
		if l.Node == nil {
			l.Node = at.Node
		}
		at = l
	}
	what, hint, _ := strings.Cut(msg, "; ")
	d := w.Problem(at.Node, at.Path, cmp.Or(hint, at.Meaning()), what)
	d.Shape = !at.SchemeSpan.Has(at.Number())
	w.Add(d)
}

// unknownInRule reports a key that a rule, or an item of schemes, does not have with its scheme.
func (w *walker) unknownInRule(t *keys.Table, key *yaml.Node, name string, known bool) {
	path := diag.Join(t.Prefix, key.Value)
	if key.Value == "until" { // an item of schemes has the key
		w.Misshapen(key, path, "write "+keys.SchemesExample, "belongs to a list of schemes")
		return
	}
	if hint, later := keys.LaterKey(keys.Pattern(path)); later {
		w.Misshapen(key, path, hint, "this key is not in this version")
		return
	}
	if owners := keys.SchemesWith(key.Value); len(owners) > 0 {
		if known {
			w.Misshapen(key, path, "remove it, or take scheme: "+diag.OrList(owners), "belongs to %s, not to %s", diag.OrList(owners), name)
		}
		return
	}
	if !known && name != "" {
		return // it may belong to the scheme that was meant
	}
	if hint, ok := t.RuleWord(key.Value); ok {
		w.Misshapen(key, path, hint, "unknown key")
		return
	}
	w.unknownKey(t, "", key)
}
