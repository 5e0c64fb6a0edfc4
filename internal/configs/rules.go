package configs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/ps/scheme"
)

// items returns the mappings of a list of rules or faults; ok is false if the list itself is wrong.
func (w *walker) items(l *leaf, n *yaml.Node, example string) (items []*yaml.Node, ok bool) {
	if n.Kind != yaml.SequenceNode {
		w.misshapen(n, l.path, "write it as a list: "+example, "want a list, got %s", describe(n))
		return nil, false
	}
	if len(n.Content) > itemsMax {
		w.misshapen(n, l.path, "shorten the list", "%d items, more than the %d allowed", len(n.Content), itemsMax)
		return nil, false
	}
	return n.Content, true
}

func (w *walker) rules(ptr *[]Rule, l *leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, `[{match: "*", scheme: bsp}]`)
	if !ok {
		return false
	}
	*ptr = make([]Rule, len(items))
	for i := range items {
		if w.more {
			return false
		}
		ok = w.rule(&(*ptr)[i], fmt.Sprintf("%s[%d]", l.path, i), deref(items[i])) && ok
	}
	return ok
}

// rule reads one sync rule. The scheme is looked up first, for its name decides which keys there are.
func (w *walker) rule(r *Rule, path string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		w.misshapen(n, path, `write {match: "*", scheme: bsp}`, "want a rule, got %s", describe(n))
		return false
	}
	if child(n, "schemes") != nil {
		return w.phasedRule(r, path, n)
	}
	t := bind(path, ruleKeys, r)
	w.rows = append(w.rows, t)
	entry, known := bindScheme(t, &r.Params, valueOf(n, "scheme"))
	if known {
		if entry.Push != "" {
			t.setDefault("push", entry.Push)
		}
		w.pushesChanges(t)
		if push := cmp.Or(valueOf(n, "push"), t.byPath["push"].def); push == PushDelta {
			t.setDefault("update", UpdateAdd)
			t.deltas = true
			if !w.takesSteps() {
				t.addWhole(entry, n)
			}
		}
	}
	before := len(w.diags)
	w.mapping(t, "", n, func(t *table, section string, key *yaml.Node) { w.unknownInRule(t, key, valueOf(n, "scheme"), known) })
	w.finish(t, n)
	if !known {
		return false
	}
	w.crossPush(t, entry, r)
	w.crossCache(t, entry, r)
	w.checkScheme(t, entry, &r.Phase, before)
	return len(w.diags) == before
}

// checkScheme holds the keys of a scheme to what it says of them; before is the number of problems before its keys
// were read.
func (w *walker) checkScheme(t *table, e scheme.Entry, ph *Phase, before int) {
	if err := ph.Params.Check(); err != nil {
		w.schemeError(t, e, err)
	}
	if len(w.diags) == before {
		if err := tryScheme(e, ph); err != nil {
			w.schemeError(t, e, err)
		}
	}
}

// child is the value of a key of a mapping, nil where it is not given.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return deref(n.Content[i+1])
		}
	}
	return nil
}

// valueOf is the text of a key of a mapping, before it was checked; "" where it is not given.
func valueOf(n *yaml.Node, key string) string {
	if value := child(n, key); value != nil {
		return value.Value
	}
	return ""
}

// setDefault gives a key of this rule alone another default.
func (t *table) setDefault(path, def string) {
	s := *t.byPath[path].spec
	s.def = def
	t.byPath[path].spec = &s
}

// addWhole makes 1 the default of weight where the scheme adds deltas as they are, each as a version.
func (t *table) addWhole(e scheme.Entry, n *yaml.Node) {
	if e.Weight == scheme.DeltaWhole && valueOf(n, "fold") != string(scheme.FoldRank) {
		t.setDefault("weight", "1")
	}
}

// crossPush holds what a push carries to what the scheme and the update need.
func (w *walker) crossPush(t *table, e scheme.Entry, r *Rule) {
	push, update := t.byPath["push"], t.byPath["update"]
	switch {
	case push.bad || update.bad:
	case e.Push != "" && r.Push != e.Push:
		w.fatal(push.node, push.path, "remove it", "%s takes pushes of kind %s, not %s", e.Name, e.Push, r.Push)
	case w.takesSteps() && (r.Push != PushDelta || r.Update != UpdateAdd):
		at := push
		if r.Push == PushDelta {
			at = update
		}
		w.fatal(at.node, at.path, "remove it",
			"workers that take steps of their own (local) push what these changed, and local.outer says what the servers do with it")
	case (r.Push == PushDelta) != (r.Update == UpdateAdd):
		at := update
		if at.node == nil {
			at = push
		}
		w.fatal(at.node, at.path, "write push: gradient with update: optimizer, or push: delta with update: add",
			"push: %s does not go with update: %s", r.Push, r.Update)
	}
}

// crossCache demands deltas where workers add their own updates to their copies: what an optimizer on the server makes of
// a gradient they do not know.
func (w *walker) crossCache(t *table, e scheme.Entry, r *Rule) {
	cache, push := t.byPath["cache"], t.byPath["push"]
	if cache == nil || cache.bad || push.bad || e.CopiesOf(r.Params) == scheme.Pulled || r.Push == PushDelta {
		return
	}
	w.fatal(cache.node, cache.path, "add push: delta",
		"a worker adds its own updates to its copy, and with push: %s it does not know them", r.Push)
}

// tryScheme builds the scheme for two workers and throws it away: only its constructor knows which keys
// contradict each other.
func tryScheme(e scheme.Entry, r *Phase) error {
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
func (w *walker) schemeError(t *table, e scheme.Entry, err error) {
	msg := strings.TrimPrefix(err.Error(), e.Name+": ")
	at := t.byPath["scheme"]
	if m := keyed.FindStringSubmatch(msg); m != nil && t.byPath[m[1]] != nil {
		l := t.byPath[m[1]]
		if l.bad {
			return // its problem is told already
		}
		l.bad, msg = true, m[2]
		if l.node == nil {
			l.node = at.node
		}
		at = l
	}
	what, hint, _ := strings.Cut(msg, "; ")
	d := w.problem(at.node, at.path, cmp.Or(hint, at.meaning()), what)
	d.shape = !at.params.has(at.number())
	w.add(d)
}

func (w *walker) unknownInRule(t *table, key *yaml.Node, name string, known bool) {
	path := join(t.prefix, key.Value)
	if key.Value == "until" { // an item of schemes has the key
		w.misshapen(key, path, "write "+schemesExample, "belongs to a list of schemes")
		return
	}
	if hint, later := laterKey(indices.ReplaceAllString(path, "[]")); later {
		w.misshapen(key, path, hint, "this key is not in this version")
		return
	}
	if owners := ownersOf(key.Value); len(owners) > 0 {
		if known {
			w.misshapen(key, path, "remove it, or take scheme: "+orList(owners), "belongs to %s, not to %s", orList(owners), name)
		}
		return
	}
	if !known && name != "" {
		return // it may belong to the scheme that was meant
	}
	if hint, ok := t.ruleWord(key.Value); ok {
		w.misshapen(key, path, hint, "unknown key")
		return
	}
	w.unknownKey(t, "", key)
}

// ownersOf lists the schemes with a key of that name.
func ownersOf(name string) []string {
	var owners []string
	for _, e := range scheme.All {
		for _, p := range paramsOf(e.Params()) {
			if p.spec.path == name {
				owners = append(owners, e.Name)
			}
		}
	}
	return owners
}
