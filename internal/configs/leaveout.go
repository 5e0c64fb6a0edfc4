package configs

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/ps/scheme"
)

// schemeAt returns the scheme that an override is about to change; "" if it changes none.
func schemeAt(root *yaml.Node, path []step) string {
	if n := ruleAt(root, path); n != nil {
		return diag.ValueOf(n, "scheme")
	}
	return ""
}

// ruleAt returns the rule, or the item of schemes, whose scheme a path names; nil if the path names no scheme.
func ruleAt(root *yaml.Node, path []step) *yaml.Node {
	if pattern := show(path, true); pattern != "sync[].scheme" && pattern != "sync[].schemes[].scheme" {
		return nil
	}
	n := root
	for _, s := range path[:len(path)-1] {
		switch {
		case s.key != "":
			n = diag.Child(n, s.key)
		case n.Kind == yaml.SequenceNode && s.index < len(n.Content):
			n = diag.Deref(n.Content[s.index])
		default:
			n = nil
		}
		if n == nil {
			return nil
		}
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	return n
}

// leaveOut removes the keys that only the old scheme has from a rule. A user who overrides the scheme of a rule does not mean them. With
// the new scheme they would be errors, so they are left out, and a note says so.
func (w *walker) leaveOut(root *yaml.Node, v *override, old string) {
	n := ruleAt(root, v.path)
	was, ok := scheme.All.Lookup(old)
	if n == nil || !ok {
		return
	}
	name := diag.ValueOf(n, "scheme")
	is, ok := scheme.All.Lookup(name)
	if !ok {
		return
	}
	before, now := keys.OfScheme(was), keys.OfScheme(is)
	hint := name + " has no keys of its own"
	if len(now) > 0 {
		hint = "the keys of " + name + " are: " + strings.Join(now, ", ")
	}
	for k := 0; k+1 < len(n.Content); {
		key := n.Content[k]
		if !slices.Contains(before, key.Value) || slices.Contains(now, key.Value) {
			k += 2
			continue
		}
		path := strings.TrimSuffix(show(v.path, false), "scheme") + key.Value
		w.Report(diag.Note, key, path, hint, "left out: %s is a key of %s, and %s makes the scheme %s", key.Value, old, v.said(), name)
		n.Content = slices.Delete(n.Content, k, k+2)
	}
}

// said returns the name of an override as its author wrote it.
func (v *override) said() string {
	switch {
	case v.at != nil:
		return "the sweep"
	case v.key.File == diag.SetName:
		return diag.SetName + " " + v.name
	}
	return v.key.File
}
