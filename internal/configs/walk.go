package configs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/reading"
	"fluentps/internal/configs/rules"
	"fluentps/internal/configs/settings"
)

// walker reads the tree into the Config along the tables of keys, and collects all problems.
type walker struct {
	*reading.Reading
	given *yaml.Node // the value of the key that is unknown, while that is reported
}

// root reads the whole file, and checks it across keys.
func (w *walker) root(n *yaml.Node) {
	t := keys.Bind("", keys.TopKeys, w.Config)
	w.mapping(t, "", n, w.unknownTop)
	if w.Config.Evaluate.EverySamples > 0 {
		t.SetDefault("evaluate.every_epochs", "0")
	}
	if w.Config.Baseline == settings.BaselinePSLite {
		t.SetDefault("shards.slice", "range")
	}
	if m := w.Config.Model; m.Name == "synthetic" && m.Compute.Of(1) > 0 {
		t.SetDefault("simulate.compute", keys.FormatCost(m.Compute))
	}
	if w.Config.Train.Schedule.Name == "inv" {
		t.SetDefault("train.schedule.power", "0.75")
	}
	if w.Config.Train.Optimizer.Name == "muon" {
		t.SetDefault("train.optimizer.momentum", "0.95")
	}
	w.localDefaults(t)
	w.workDefaults(t)
	w.generatedImages(t)
	w.finish(t, n)
	rules.Check(w.Reading, t, n)
}

// mapping reads the keys of one section of a table. unknown reports a key that the table does not have.
func (w *walker) mapping(t *keys.Table, section string, n *yaml.Node, unknown func(t *keys.Table, section string, key *yaml.Node)) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content) && !w.Full; i += 2 {
		key, value := n.Content[i], diag.Deref(n.Content[i+1])
		name := key.Value
		path := diag.Join(t.Prefix, diag.Join(section, name))
		switch {
		case key.Kind != yaml.ScalarNode:
			w.Fatal(key, diag.Join(t.Prefix, section), "write key: value, with a plain word for the key", "want a key, got %s",
				diag.Describe(diag.Deref(key)))
			continue
		case key.ShortTag() == "!!merge":
			w.Fatal(key, diag.Join(t.Prefix, section), "write the keys out; *name as the value of one key works", "merge keys (<<) are not read")
			continue
		case seen[name] != nil:
			w.duplicate(key, seen[name], path)
			continue
		}
		seen[name] = key
		rel := diag.Join(section, name)
		if w.decimalComma(t, rel, n, i) {
			i += 2
			continue
		}
		if l := t.Leaf(rel); l != nil && !(value.Kind == yaml.MappingNode && t.HasWord(rel)) {
			w.value(l, key, value)
		} else if _, ok := t.Sections[rel]; ok {
			w.section(t, rel, key, value, unknown)
		} else {
			w.given = value
			unknown(t, section, key)
		}
	}
}

var (
	wholeDigits = regexp.MustCompile(`^[-+]?[0-9]+$`)
	partDigits  = regexp.MustCompile(`^[0-9]+(?:[eE][-+]?[0-9]+)?$`)
)

// decimalComma reports a number with a decimal comma in braces, where the comma ends the value: {lr: 0,1} has the keys lr and 1, the
// latter without a value.
func (w *walker) decimalComma(t *keys.Table, rel string, n *yaml.Node, i int) bool {
	if n.Style&yaml.FlowStyle == 0 || i+3 >= len(n.Content) {
		return false
	}
	whole, part, rest := n.Content[i+1], n.Content[i+2], n.Content[i+3]
	if whole.Kind != yaml.ScalarNode || whole.Style != 0 || !wholeDigits.MatchString(whole.Value) ||
		!partDigits.MatchString(part.Value) || !diag.IsNull(rest) || rest.Value != "" {
		return false
	}
	if l := t.Leaf(rel); l != nil {
		l.Key, l.Node, l.Bad = n.Content[i], whole, true
	}
	w.Misshapen(whole, diag.Join(t.Prefix, rel), fmt.Sprintf("write %s.%s", whole.Value, part.Value),
		"%s,%s has a decimal comma, which ends the value within braces", whole.Value, part.Value)
	return true
}

// duplicate reports a key that is in its section twice.
func (w *walker) duplicate(key, first *yaml.Node, path string) {
	w.Fatal(key, path, "keep one of them", "the key is here again; it is first at %s", w.Where(first))
}

// section reads a section of a table.
func (w *walker) section(t *keys.Table, rel string, key, value *yaml.Node, unknown func(*keys.Table, string, *yaml.Node)) {
	t.Sections[rel] = key
	path := diag.Join(t.Prefix, rel)
	switch {
	case value.Kind == yaml.MappingNode:
		w.mapping(t, rel, value, unknown)
	case diag.IsNull(value): // all of its keys are commented out
	default:
		w.Misshapen(value, path, "its keys are: "+strings.Join(t.Below(rel), ", ")+t.WithWord(rel, value.Value),
			"want keys and values, got %s", diag.Describe(value))
		t.Excuse(rel)
	}
}

// value reads one leaf.
func (w *walker) value(l *keys.Leaf, key, value *yaml.Node) {
	l.Key, l.Node = key, value
	w.Origins.Set(l.Path, w.originOf(value, key))
	w.locate(l.Path, value)
	switch ptr := l.Ptr.(type) {
	case *[]settings.Rule:
		l.Bad = !w.rules(ptr, l, value)
		return
	case *[]settings.Phase:
		l.Bad = !w.phases(ptr, l, value)
		return
	case *[]settings.Fault:
		l.Bad = !w.faults(ptr, l, value)
		return
	}
	if diag.IsNull(value) {
		l.Bad = true
		w.Misshapen(key, l.Path, "write one, or remove the key", "the key has no value")
		return
	}
	for _, p := range l.Read(value, w.From[value] != nil) {
		l.Bad = true
		at := value
		if p.At != nil {
			at = p.At
		}
		d := w.Problem(at, l.Path, cmp.Or(p.Hint, l.Meaning()), p.Msg)
		d.Shape = !p.Fine
		w.Add(d)
	}
	if !l.Bad {
		w.octal(l, value)
	}
}

// locate remembers where a value stands, and each item of a list.
func (w *walker) locate(path string, value *yaml.Node) {
	t := w.TextOf(value)
	line, col := t.Place(value)
	w.Origins.Locate(path, t.At(line, col, "", ""))
	if value.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range value.Content {
		if item.Kind == yaml.ScalarNode {
			w.locate(fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// originOf names the source of a value. An override of a value, or of an item of a list, counts; else the key
// says where it stands.
func (w *walker) originOf(value, key *yaml.Node) string {
	for _, n := range append([]*yaml.Node{value}, value.Content...) {
		if t := w.From[n]; t != nil {
			return t.Origin
		}
	}
	return w.Where(key)
}

// unknownTop reports a key that the table of the whole file does not have.
func (w *walker) unknownTop(t *keys.Table, section string, key *yaml.Node) {
	name := key.Value
	path := diag.Join(section, name)
	if hint, later := keys.LaterKey(path); later {
		w.Misshapen(key, path, hint, "this key is not in this version")
		return
	}
	if hint, moved := keys.MovedKey(path); moved {
		w.Misshapen(key, path, hint, "this key has moved")
		return
	}
	w.unknownKey(t, section, key)
}

// unknownKey reports a key that no table has. It excuses the key that was probably meant from being reported as missing.
func (w *walker) unknownKey(t *keys.Table, section string, key *yaml.Node) {
	name := key.Value
	legal := t.Below(section)
	if section == "" && t.Prefix == "" {
		legal = append(legal, keys.SweepKey)
	}
	hint := diag.DidYouMean(name, legal)
	near := diag.Nearest(name, legal)
	for _, n := range near {
		t.Excuse(diag.Join(section, n))
	}
	if len(near) > 0 {
		hint = w.meantIn(t, section, near)
	} else {
		hint = w.further(t, section, name, legal, hint)
	}
	w.Misshapen(key, diag.Join(t.Prefix, diag.Join(section, name)), hint, "unknown key")
}

// meantIn is meantOf for names in a section.
func (w *walker) meantIn(t *keys.Table, section string, names []string) string {
	leaves := make([]*keys.Leaf, len(names))
	for i, n := range names {
		leaves[i] = t.Leaf(diag.Join(section, n))
	}
	return w.meantOf(t, leaves, names)
}

// further looks for the meaning of a word that is near no key of its section. It excuses the keys that were probably meant.
func (w *walker) further(t *keys.Table, section, name string, legal []string, hint string) string {
	var paths []string
	if s, ok := synonymOf(name); ok && (t.Prefix == "" || len(s.paths) == 0) {
		for _, path := range s.paths {
			t.Excuse(path)
		}
		return w.meant(s, w.given.Value)
	}
	if words := begun(name, legal); len(words) > 0 {
		for _, n := range words {
			t.Excuse(diag.Join(section, n))
		}
		return w.meantIn(t, section, words)
	}
	var leaves []*keys.Leaf
	word, _, _ := strings.Cut(name, "_")
	others := elsewhere(name, t)
	for _, n := range legal {
		if first, _, _ := strings.Cut(n, "_"); first == word && len(others) > 0 { // checkpoint.every beside evaluate.every_epochs
			t.Excuse(diag.Join(section, n))
			path := diag.Join(section, n)
			paths, leaves = append(paths, diag.Join(t.Prefix, path)), append(leaves, t.Leaf(path))
		}
	}
	for _, l := range others {
		t.Excuse(l.Spec.Path)
		paths, leaves = append(paths, l.Path), append(leaves, l)
	}
	if len(paths) > 0 {
		hint = w.meantOf(t, leaves, paths)
	}
	return hint
}

// elsewhere lists the keys of that name in other sections.
func elsewhere(name string, t *keys.Table) []*keys.Leaf {
	var at []*keys.Leaf
	for _, l := range t.Leaves {
		if strings.HasSuffix(l.Spec.Path, "."+name) {
			at = append(at, l)
		}
	}
	return at
}

// finish fills the defaults, and reports keys that are missing or that do not belong to the current values.
func (w *walker) finish(t *keys.Table, n *yaml.Node) {
	for _, l := range t.Leaves {
		holds, known := t.Holds(l)
		switch {
		case l.Key != nil && known && !holds:
			by := t.ByPath[l.Only.Path]
			l.Bad = true
			hint := fmt.Sprintf("remove it, or change %s", by.Path)
			if s, known := synonymOf(diag.LastName(l.Path)); known && s.hint != "" { // most who write it mean something else
				hint = "remove it, and " + s.hint
			}
			if has, known := t.Holds(by); known && !has { // the configuration has no such key at all
				w.Misshapen(l.Key, l.Path, "remove it", "belongs to %s: %s, and that key to %s: %s", by.Path, diag.OrList(l.Only.Words()),
					by.Only.Path, diag.OrList(by.Only.Words()))
				continue
			}
			w.Misshapen(l.Key, l.Path, hint,
				"belongs to %s: %s, not %s", by.Path, diag.OrList(l.Only.Words()), *by.Ptr.(*string))
		case l.Key != nil || l.Bad || !known || !holds:
		case l.Required:
			l.Bad = true
			w.Misshapen(w.SectionOf(t, l, n), l.Path, missingHint(l), "is missing")
		case l.Def != "":
			w.fill(l)
		}
	}
}

// missingHint says how to set a key that is missing.
func missingHint(l *keys.Leaf) string {
	if len(l.Values()) > 0 {
		return "it is one of: " + strings.Join(l.Values(), ", ")
	}
	return "set it: " + l.Doc
}

// defaults caches the parsed default texts; their nodes are only read.
var defaults sync.Map

// fill sets the default. It panics on an invalid default, which is a mistake in the table.
func (w *walker) fill(l *keys.Leaf) {
	cached, ok := defaults.Load(l.Def)
	if !ok {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(l.Def), &doc); err != nil {
			panic("configs: default of " + l.Path + ": " + err.Error())
		}
		cached, _ = defaults.LoadOrStore(l.Def, doc.Content[0])
	}
	node := cached.(*yaml.Node)
	switch ptr := l.Ptr.(type) {
	case *[]settings.Rule:
		w.rules(ptr, l, node)
		w.Origins.Forget(l.Path + "[")
		return
	case *[]settings.Fault:
		*ptr = []settings.Fault{}
		return
	}
	if ps := l.Read(node, false); len(ps) > 0 {
		panic("configs: default of " + l.Path + ": " + ps[0].Msg)
	}
}
