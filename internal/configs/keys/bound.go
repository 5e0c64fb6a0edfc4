package keys

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// bindFault makes the table of a fault that has been read: a pause has no slowness.
func bindFault(prefix string, f *settings.Fault) *Table {
	t := Bind(prefix, FaultKeys, f)
	if f.Paused() {
		t.Leaves = slices.DeleteFunc(t.Leaves, func(l *Leaf) bool { return strings.HasPrefix(l.Spec.Path, "slow.") })
	}
	return t
}

// FaultText writes a fault as an item of faults:, without what is a default: {worker: 3, slow: {factor: 5}}.
func FaultText(f *settings.Fault) string {
	parts := map[string][]string{}
	for _, l := range bindFault("", f).Leaves {
		section, name, in := strings.Cut(l.Spec.Path, ".")
		if in && bindFault("", f).Met(l) && !isZero(l.Ptr) && !l.IsDefault() {
			parts[section] = append(parts[section], name+": "+Format(l.Ptr))
		}
	}
	who := WorkerIndex(f.Worker)
	text := "{worker: " + Format(&who)
	for _, section := range []string{"slow", "pause"} {
		if of := parts[section]; of != nil {
			text += fmt.Sprintf(", %s: {%s}", section, strings.Join(of, ", "))
		}
	}
	return text + "}"
}

func ParamNames(c *settings.Config) []string { return workload.ParamNames(c.ModelSpec()) }

func KeysOf(e scheme.Entry) (names []string) {
	for _, l := range ParamsOf(e.Params()) {
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
	for _, p := range ParamsOf(*params) {
		t.add(p.Spec, p.Ptr)
	}
	t.SetDefault("fold", string(e.Fold))
	return e, true
}

const SchemesExample = "schemes: [{scheme: bsp, until: 100}, {scheme: ssp, staleness: 3}]"

// OwnersOf lists the schemes with a key of that name.
func OwnersOf(name string) []string {
	var owners []string
	for _, e := range scheme.All {
		for _, p := range ParamsOf(e.Params()) {
			if p.Spec.Path == name {
				owners = append(owners, e.Name)
			}
		}
	}
	return owners
}
