package configs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// walker reads the tree into the Config along the schema, and collects all problems.
type walker struct {
	file    *text
	from    map[*yaml.Node]*text // nodes that come from an override
	diags   Diagnostics
	more    bool // the list of problems is full
	origins *Origins
	cfg     *Config
	rows    []*table // of the sync rules, for the checks across them
	tree    *yaml.Node
	given   *yaml.Node // the value of the key that is unknown, while that is reported
}

func (w *walker) textOf(n *yaml.Node) *text {
	if t := w.from[n]; t != nil {
		return t
	}
	return w.file
}

// report adds a problem at a node.
func (w *walker) report(s Severity, n *yaml.Node, path, hint, format string, args ...any) {
	d := w.problem(n, path, hint, fmt.Sprintf(format, args...))
	d.Severity = s
	w.add(d)
}

func (w *walker) problem(n *yaml.Node, path, hint, msg string) Diagnostic {
	t := w.textOf(n)
	line, col := t.place(n)
	d := t.at(line, col, msg, hint)
	d.Path = path
	return d
}

func (w *walker) add(d Diagnostic) {
	d = d.printable()
	if len(w.diags) < diagnosticsMax {
		w.diags = append(w.diags, d)
	} else if !w.more {
		w.more = true
		d.Path, d.Msg, d.Hint, d.Severity = "", fmt.Sprintf("more than %d problems", diagnosticsMax), "solve those above first", Fatal
		w.diags = append(w.diags, d)
	}
}

func (w *walker) fatal(n *yaml.Node, path, hint, format string, args ...any) {
	w.report(Fatal, n, path, hint, format, args...)
}

// misshapen is fatal for a problem that the JSON Schema also refuses.
func (w *walker) misshapen(n *yaml.Node, path, hint, format string, args ...any) {
	d := w.problem(n, path, hint, fmt.Sprintf(format, args...))
	d.shape = true
	w.add(d)
}

func (w *walker) root(n *yaml.Node) {
	t := bind("", topKeys, w.cfg)
	w.mapping(t, "", n, w.unknownTop)
	if w.cfg.Evaluate.EverySamples > 0 {
		t.setDefault("evaluate.every_epochs", "0")
	}
	if w.cfg.Baseline == BaselinePSLite {
		t.setDefault("shards.slice", "range")
	}
	if m := w.cfg.Model; m.Name == "synthetic" && m.Compute.Of(1) > 0 {
		t.setDefault("simulate.compute", formatCost(m.Compute))
	}
	if w.cfg.Train.Schedule.Name == "inv" {
		t.setDefault("train.schedule.power", "0.75")
	}
	w.localDefaults(t)
	w.workDefaults(t)
	w.generatedImages(t)
	w.finish(t, n)
	w.cross(t, n)
}

// mapping reads the keys of one section of a table. unknown reports a key that the table does not have.
func (w *walker) mapping(t *table, section string, n *yaml.Node, unknown func(t *table, section string, key *yaml.Node)) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content) && !w.more; i += 2 {
		key, value := n.Content[i], deref(n.Content[i+1])
		name := key.Value
		path := join(t.prefix, join(section, name))
		switch {
		case key.Kind != yaml.ScalarNode:
			w.fatal(key, join(t.prefix, section), "write key: value, with a plain word for the key", "want a key, got %s", describe(deref(key)))
			continue
		case key.ShortTag() == "!!merge":
			w.fatal(key, join(t.prefix, section), "write the keys out; *name as the value of one key works", "merge keys (<<) are not read")
			continue
		case seen[name] != nil:
			w.duplicate(key, seen[name], path)
			continue
		}
		seen[name] = key
		rel := join(section, name)
		if w.decimalComma(t, rel, n, i) {
			i += 2
			continue
		}
		if l := t.leaf(rel); l != nil && !(value.Kind == yaml.MappingNode && t.hasWord(rel)) {
			w.value(l, key, value)
		} else if _, ok := t.sections[rel]; ok {
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
func (w *walker) decimalComma(t *table, rel string, n *yaml.Node, i int) bool {
	if n.Style&yaml.FlowStyle == 0 || i+3 >= len(n.Content) {
		return false
	}
	whole, part, rest := n.Content[i+1], n.Content[i+2], n.Content[i+3]
	if whole.Kind != yaml.ScalarNode || whole.Style != 0 || !wholeDigits.MatchString(whole.Value) ||
		!partDigits.MatchString(part.Value) || !isNull(rest) || rest.Value != "" {
		return false
	}
	if l := t.leaf(rel); l != nil {
		l.key, l.node, l.bad = n.Content[i], whole, true
	}
	w.misshapen(whole, join(t.prefix, rel), fmt.Sprintf("write %s.%s", whole.Value, part.Value),
		"%s,%s has a decimal comma, which ends the value within braces", whole.Value, part.Value)
	return true
}

func (w *walker) duplicate(key, first *yaml.Node, path string) {
	w.fatal(key, path, "keep one of them", "the key is here again; it is first at %s", w.where(first))
}

// where is file:line of a node, for messages about two places.
func (w *walker) where(n *yaml.Node) string {
	t := w.textOf(n)
	line, _ := t.place(n)
	return fmt.Sprintf("%s:%d", t.file, line)
}

func (w *walker) section(t *table, rel string, key, value *yaml.Node, unknown func(*table, string, *yaml.Node)) {
	t.sections[rel] = key
	path := join(t.prefix, rel)
	switch {
	case value.Kind == yaml.MappingNode:
		w.mapping(t, rel, value, unknown)
	case isNull(value): // all of its keys are commented out
	default:
		w.misshapen(value, path, "its keys are: "+strings.Join(t.below(rel), ", ")+t.withWord(rel, value.Value),
			"want keys and values, got %s", describe(value))
		t.excuse(rel)
	}
}

// value reads one leaf.
func (w *walker) value(l *leaf, key, value *yaml.Node) {
	l.key, l.node = key, value
	w.origins.of[l.path] = w.originOf(value, key)
	w.locate(l.path, value)
	switch ptr := l.ptr.(type) {
	case *[]Rule:
		l.bad = !w.rules(ptr, l, value)
		return
	case *[]Phase:
		l.bad = !w.phases(ptr, l, value)
		return
	case *[]Fault:
		l.bad = !w.faults(ptr, l, value)
		return
	}
	if isNull(value) {
		l.bad = true
		w.misshapen(key, l.path, "write one, or remove the key", "the key has no value")
		return
	}
	for _, p := range l.read(value, w.from[value] != nil) {
		l.bad = true
		at := value
		if p.at != nil {
			at = p.at
		}
		d := w.problem(at, l.path, cmp.Or(p.hint, l.meaning()), p.msg)
		d.shape = !p.fine
		w.add(d)
	}
	if !l.bad {
		w.octal(l, value)
	}
}

// locate remembers where a value stands, and each item of a list.
func (w *walker) locate(path string, value *yaml.Node) {
	t := w.textOf(value)
	line, col := t.place(value)
	w.origins.at[path] = t.at(line, col, "", "")
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
		if t := w.from[n]; t != nil {
			return t.origin
		}
	}
	return w.where(key)
}

// unknownTop reports a key that the schema outside rules and faults does not have.
func (w *walker) unknownTop(t *table, section string, key *yaml.Node) {
	name := key.Value
	path := join(section, name)
	if hint, later := laterKey(path); later {
		w.misshapen(key, path, hint, "this key is not in this version")
		return
	}
	if hint, moved := movedKey(path); moved {
		w.misshapen(key, path, hint, "this key has moved")
		return
	}
	w.unknownKey(t, section, key)
}

// unknownKey reports a key that no table has. It excuses the key that was probably meant from being reported as missing.
func (w *walker) unknownKey(t *table, section string, key *yaml.Node) {
	name := key.Value
	legal := t.below(section)
	if section == "" && t.prefix == "" {
		legal = append(legal, sweepKey)
	}
	hint := didYouMean(name, legal)
	near := Nearest(name, legal)
	for _, n := range near {
		t.excuse(join(section, n))
	}
	if len(near) > 0 {
		hint = w.meantIn(t, section, near)
	} else {
		hint = w.further(t, section, name, legal, hint)
	}
	w.misshapen(key, join(t.prefix, join(section, name)), hint, "unknown key")
}

// meantIn is meantOf for names in a section.
func (w *walker) meantIn(t *table, section string, names []string) string {
	keys := make([]*leaf, len(names))
	for i, n := range names {
		keys[i] = t.leaf(join(section, n))
	}
	return w.meantOf(t, keys, names)
}

// further looks for the meaning of a word that is near no key of its section. It excuses the keys that were probably meant.
func (w *walker) further(t *table, section, name string, legal []string, hint string) string {
	var paths []string
	if s, ok := synonymOf(name); ok && (t.prefix == "" || len(s.paths) == 0) {
		for _, path := range s.paths {
			t.excuse(path)
		}
		return w.meant(s, w.given.Value)
	}
	if words := begun(name, legal); len(words) > 0 {
		for _, n := range words {
			t.excuse(join(section, n))
		}
		return w.meantIn(t, section, words)
	}
	var keys []*leaf
	word, _, _ := strings.Cut(name, "_")
	others := elsewhere(name, t)
	for _, n := range legal {
		if first, _, _ := strings.Cut(n, "_"); first == word && len(others) > 0 { // checkpoint.every beside evaluate.every_epochs
			t.excuse(join(section, n))
			paths, keys = append(paths, join(t.prefix, join(section, n))), append(keys, t.leaf(join(section, n)))
		}
	}
	for _, l := range others {
		t.excuse(l.spec.path)
		paths, keys = append(paths, l.path), append(keys, l)
	}
	if len(paths) > 0 {
		hint = w.meantOf(t, keys, paths)
	}
	return hint
}

// elsewhere lists the keys of that name in other sections.
func elsewhere(name string, t *table) []*leaf {
	var at []*leaf
	for _, l := range t.leaves {
		if strings.HasSuffix(l.spec.path, "."+name) {
			at = append(at, l)
		}
	}
	return at
}

// finish fills the defaults, and reports keys that are missing or that do not belong to the current values.
func (w *walker) finish(t *table, n *yaml.Node) {
	for _, l := range t.leaves {
		holds, known := t.holds(l)
		switch {
		case l.key != nil && known && !holds:
			by := t.byPath[l.only.path]
			l.bad = true
			w.misshapen(l.key, l.path, fmt.Sprintf("remove it, or change %s", by.path),
				"belongs to %s: %s, not %s", by.path, orList(l.only.words()), *by.ptr.(*string))
		case l.key != nil || l.bad || !known || !holds:
		case l.required:
			l.bad = true
			w.misshapen(w.sectionOf(t, l, n), l.path, missingHint(l), "is missing")
		case l.def != "":
			w.fill(l)
		}
	}
}

func missingHint(l *leaf) string {
	if len(l.values()) > 0 {
		return "it is one of: " + strings.Join(l.values(), ", ")
	}
	return "set it: " + l.doc
}

// sectionOf returns the place of a missing key: its innermost section that is given, or else the whole mapping.
func (w *walker) sectionOf(t *table, l *leaf, n *yaml.Node) *yaml.Node {
	path := l.spec.path
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if key := t.sections[path[:i]]; key != nil {
			return key
		}
	}
	return n
}

// defaults caches the parsed default texts; their nodes are only read.
var defaults sync.Map

// fill sets the default. It panics on an invalid default, which is a mistake in the table.
func (w *walker) fill(l *leaf) {
	cached, ok := defaults.Load(l.def)
	if !ok {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(l.def), &doc); err != nil {
			panic("configs: default of " + l.path + ": " + err.Error())
		}
		cached, _ = defaults.LoadOrStore(l.def, doc.Content[0])
	}
	node := cached.(*yaml.Node)
	switch ptr := l.ptr.(type) {
	case *[]Rule:
		w.rules(ptr, l, node)
		for path := range w.origins.of {
			if strings.HasPrefix(path, l.path+"[") {
				delete(w.origins.of, path)
			}
		}
		for path := range w.origins.at {
			if strings.HasPrefix(path, l.path+"[") {
				delete(w.origins.at, path)
			}
		}
		return
	case *[]Fault:
		*ptr = []Fault{}
		return
	}
	if ps := l.read(node, false); len(ps) > 0 {
		panic("configs: default of " + l.path + ": " + ps[0].msg)
	}
}
