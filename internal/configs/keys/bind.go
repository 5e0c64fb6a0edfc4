package keys

import (
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// Bind makes the table of the keys of a struct, and binds them to its fields. prefix is its path, and keys one of
// TopKeys, RuleKeys, PhaseKeys and FaultKeys.
func Bind[T any](prefix string, keys func() []row, root *T) *Table {
	t := &Table{Prefix: prefix, ByPath: map[string]*Leaf{}, Sections: map[string]*yaml.Node{}}
	rows, v := keys(), reflect.ValueOf(root).Elem()
	for i := range rows {
		t.add(&rows[i].Spec, rows[i].pointer(v))
	}
	return t
}

func (t *Table) add(s *Spec, ptr any) *Leaf {
	l := &Leaf{Spec: s, Ptr: ptr, Path: diag.Join(t.Prefix, s.Path)}
	t.Leaves = append(t.Leaves, l)
	t.ByPath[s.Path] = l
	for i, c := range s.Path {
		if c == '.' {
			t.Sections[s.Path[:i]] = nil
		}
	}
	return l
}

// bindFault makes the table of a fault that has been read: a pause has no slowness.
func bindFault(prefix string, f *settings.Fault) *Table {
	t := Bind(prefix, FaultKeys, f)
	if f.Paused() {
		t.Leaves = slices.DeleteFunc(t.Leaves, func(l *Leaf) bool { return strings.HasPrefix(l.Spec.Path, "slow.") })
	}
	return t
}

// OfScheme lists the keys of a scheme.
func OfScheme(e scheme.Entry) (names []string) {
	for _, l := range BindParams(e.Params()) {
		names = append(names, l.Spec.Path)
	}
	return names
}

// ruleSpec returns a key that rules with one scheme and with several schemes share.
func ruleSpec(path string) Spec {
	rows := RuleKeys()
	return rows[slices.IndexFunc(rows, func(r row) bool { return r.Path == path })].Spec
}

// BindPhased makes the table of a rule with a list of schemes.
func BindPhased(prefix string, r *settings.Rule, list *[]settings.Phase) *Table {
	t := &Table{Prefix: prefix, ByPath: map[string]*Leaf{}, Sections: map[string]*yaml.Node{}}
	match, servers, push, update := ruleSpec("match"), ruleSpec("servers"), ruleSpec("push"), ruleSpec("update")
	t.add(&match, &r.Match)
	t.add(&servers, &r.Servers)
	t.add(&Spec{Path: "schemes", Required: true, Doc: "the schemes of the shards in turn; each except the last has until"}, list)
	t.add(&push, &r.Push)
	t.add(&update, &r.Update)
	return t
}

// BindScheme adds the keys of a scheme to the table of a rule or a phase.
func BindScheme(t *Table, params *scheme.Params, name string) (e scheme.Entry, known bool) {
	e, known = scheme.All.Lookup(name)
	if !known {
		return e, false
	}
	if *params == nil {
		*params = e.Params()
	}
	for _, p := range BindParams(*params) {
		t.add(p.Spec, p.Ptr)
	}
	t.SetDefault("fold", string(e.Fold))
	return e, true
}

// SchemesExample is a list of schemes as a hint shows it.
const SchemesExample = "schemes: [{scheme: bsp, until: 100}, {scheme: ssp, staleness: 3}]"

// SchemesWith lists the schemes with a key of that name.
func SchemesWith(name string) []string {
	var owners []string
	for _, e := range scheme.All {
		for _, p := range BindParams(e.Params()) {
			if p.Spec.Path == name {
				owners = append(owners, e.Name)
			}
		}
	}
	return owners
}
