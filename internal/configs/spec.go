package configs

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/ps/workload"

	"gopkg.in/yaml.v3"
)

// spec is the description of one key in a table.
type spec struct {
	path     string          // within its table; sections by dots
	def      string          // the default as YAML; "" for none
	required bool            // missing is an error
	words    func() []string // the legal words; nil: any
	span     span            // the legal numbers, times in seconds, sizes in bytes
	params   span            // the limits of a key of a scheme, which Params.Check enforces
	text     *textForm       // the form of a text; nil: any
	single   bool            // the number ends in float32 arithmetic
	items    int             // fewest items of a list
	only     *only           // the key exists only then
	doc      string
}

// values lists the legal words; nil: any. The list is not cached, because schemes may be added at run time.
func (s *spec) values() []string {
	if s.words == nil {
		return nil
	}
	return s.words()
}

// only ties a key to the value of another key that stands before it in the table.
type only struct {
	path  string
	words func() []string // not cached, because policies may be added at run time
}

// leaf is a key bound to its destination.
type leaf struct {
	*spec
	ptr  any        // *string, *int, ... into the Config
	path string     // from the root: sync[1].match
	key  *yaml.Node // the key in the YAML; nil: not given
	node *yaml.Node // its value
	bad  bool       // a problem with the value has been reported
}

func (l *leaf) isDefault() bool { return l.def != "" && defaultText(l.ptr) == l.def }

// meaning returns the default hint: what the key is for, and its default.
func (l *leaf) meaning() string {
	hint := lastName(l.path) + ": " + l.doc
	if l.def != "" {
		hint += " (default " + l.def + ")"
	}
	return hint
}

// number returns the value of a key with a number; otherwise 0.
func (l *leaf) number() float64 {
	switch v := reflect.ValueOf(l.ptr).Elem(); {
	case v.CanInt():
		return float64(v.Int())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

// pattern is the path without list indices.
func (l *leaf) pattern() string { return indices.ReplaceAllString(l.path, "[]") }

var indices = regexp.MustCompile(`\[[0-9]+\]`)

// table is the leaves of one mapping: the whole file, one rule or one fault.
type table struct {
	prefix   string // "" or sync[1]
	leaves   []*leaf
	byPath   map[string]*leaf
	sections map[string]*yaml.Node // each section's key, nil while it was not met
	deltas   bool                  // of a rule: it pushes deltas
}

// bind makes the table of one T.
func bind[T any](prefix string, keys func() []row, root *T) *table {
	t := &table{prefix: prefix, byPath: map[string]*leaf{}, sections: map[string]*yaml.Node{}}
	rows, v := keys(), reflect.ValueOf(root).Elem()
	for i := range rows {
		t.add(&rows[i].spec, rows[i].pointer(v))
	}
	return t
}

func (t *table) add(s *spec, ptr any) *leaf {
	l := &leaf{spec: s, ptr: ptr, path: join(t.prefix, s.path)}
	t.leaves = append(t.leaves, l)
	t.byPath[s.path] = l
	for i, c := range s.path {
		if c == '.' {
			t.sections[s.path[:i]] = nil
		}
	}
	return l
}

// wordName is the key that a plain word stands for, where the table has a key that is a section as well: baseline: pslite
// is short for baseline: {name: pslite}, beside which the section's other keys may stand.
const wordName = "name"

// leaf is the key at a path; nil if the table has none. The name in a section that has a word is that word.
func (t *table) leaf(path string) *leaf {
	if section, ok := strings.CutSuffix(path, "."+wordName); ok && t.hasWord(section) {
		path = section
	}
	return t.byPath[path]
}

// hasWord says whether a section may be a plain word, too.
func (t *table) hasWord(section string) bool {
	_, is := t.sections[section]
	return is && t.byPath[section] != nil
}

// below lists the names that may stand directly in a section, in the order of the table.
func (t *table) below(section string) []string {
	var names []string
	seen := map[string]bool{}
	if section != "" && t.hasWord(section) {
		names = append(names, wordName)
	}
	for _, l := range t.leaves {
		rest, in := l.spec.path, true
		if section != "" {
			rest, in = strings.CutPrefix(rest, section+".")
		}
		name, _, _ := strings.Cut(rest, ".")
		if in && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// holds reports whether the key exists with the current values. known is false if the deciding key is itself wrong.
func (t *table) holds(l *leaf) (holds, known bool) {
	if l.only == nil {
		return true, true
	}
	by := t.byPath[l.only.path]
	if by.bad || by.required && by.key == nil {
		return false, false
	}
	return t.met(l), true
}

// met is holds for a table without problems.
func (t *table) met(l *leaf) bool {
	return l.only == nil || slices.Contains(l.only.words(), *t.byPath[l.only.path].ptr.(*string))
}

// excuse marks a key, or all keys of a section, as reported, unless they are given, so that they are not reported as missing.
func (t *table) excuse(path string) {
	for _, l := range t.leaves {
		if l.key == nil && (l.spec.path == path || strings.HasPrefix(l.spec.path, path+".")) {
			l.bad = true
		}
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// Key describes one key of the YAML, for documentation and completion.
type Key struct {
	Path     string   // sync[].match; list indices left out
	Type     string   // text, one of, whole number, number, time, size, list, ...
	Default  string   // as YAML; "" for none
	Values   []string // the legal words, if they are limited
	Required bool     // within its section or list item
	Limit    string   // of its numbers: "must be at least 1"; "": none
	With     string   // the key and the values with which it exists: "data.set: csv or libsvm"; "": always
	Doc      string
}

// Keys lists every key, except for the keys of single schemes, which are in the table of schemes.
func Keys() []Key {
	var out []Key
	list := func(prefix string, leaves []*leaf) {
		for _, l := range leaves {
			k := Key{Path: join(prefix, l.spec.path), Type: typeName(l), Default: l.def, Values: l.values(),
				Required: l.required, Limit: limitText(l), Doc: l.doc}
			if l.only != nil {
				k.With = l.only.path + ": " + orList(l.only.words())
			}
			out = append(out, k)
		}
	}
	list("", bind("", topKeys, &Config{}).leaves)
	list("sync[]", bind("", ruleKeys, &Rule{}).leaves)
	list("sync[]", bindPhased("", &Rule{}, &[]Phase{}).leaves[1:2])
	list("sync[].schemes[]", bind("", phaseKeys, &Phase{}).leaves)
	list("faults[]", bind("", faultKeys, &Fault{}).leaves)
	return out
}

// limitText words the limits of a key's numbers, in the key's unit.
func limitText(l *leaf) string {
	show := number
	switch l.ptr.(type) {
	case *time.Duration, *workload.Cost:
		show = func(s float64) string { return number(s) + "s" }
	case *byteSize:
		show = func(b float64) string { return FormatSize(int64(b)) }
	case *int, *int64, *uint64, *[]int, *[]int64:
		show = whole
	}
	if !l.span.set {
		return ""
	}
	return l.span.want(show)
}

func typeName(l *leaf) string {
	switch l.ptr.(type) {
	case *string:
		if l.values() != nil {
			return "one of"
		}
		return "text"
	case *bool:
		return "true or false"
	case *int, *int64, *uint64:
		return "whole number"
	case *float64:
		return "number"
	case *time.Duration:
		return "time"
	case *byteSize:
		return "size"
	case *workerIndex:
		return `whole number or "*"`
	case *Until:
		return "whole number, {epochs: number} or {straggler: shows or gone, factor: number, rounds: whole number}"
	case *workload.Cost:
		return "time or {fixed: time, per_sample: time}"
	}
	return "list"
}

// textForm is what a text must look like.
type textForm struct {
	*regexp.Regexp
	refusal func(text string) string // of a text that does not match: "what; hint"
}

// textForms are those that tags name.
var textForms = map[string]*textForm{"run name": &runName, "glob": &glob, "path": &filePath,
	"parameter file": &parameterFile, "link rates": &linkRates}

var (
	runName = textForm{regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`), func(s string) string {
		return clip(strconv.Quote(s)) + " does not name a folder; use letters, digits, - _ . (not first: - .), at most 100"
	}}
	glob = textForm{regexp.MustCompile(`^[A-Za-z0-9_.*?-]+$`), func(s string) string {
		return clip(strconv.Quote(s)) + " is not a pattern of parameter names; use a name such as fc1.weight, with * for " +
			"any characters and ? for one"
	}}
	filePath = textForm{regexp.MustCompile(`^[^\x00]+$`), func(s string) string {
		if s == "" {
			return "the path is empty; name a file or folder"
		}
		return "the path holds a zero byte; name a file or folder"
	}}
	linkRates = textForm{regexp.MustCompile(
		`^([A-Za-z0-9._-]+=)?[0-9.]+ ?[kKMGT]?(bit|B)(/s)?(, ?([A-Za-z0-9._-]+=)?[0-9.]+ ?[kKMGT]?(bit|B)(/s)?)*$`), func(s string) string {
		return clip(strconv.Quote(s)) + " is not a rate; write it with its unit, as in 10Gbit, 200Mbit or 25MB, and " +
			"those of single hosts after it: 10Gbit,node3=1Gbit"
	}}
	parameterFile = textForm{regexp.MustCompile(`^[^\x00]+\.(safetensors|npz)$`), func(s string) string {
		if !filePath.MatchString(s) {
			return filePath.refusal(s)
		}
		return clip(strconv.Quote(s)) + " does not end in .safetensors or .npz, which selects the format of the file; choose one of the two"
	}}
)
