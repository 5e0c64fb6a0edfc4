package keys

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset/csv"
)

// Spec is the description of one key in a table.
type Spec struct {
	Path       string          // within its table; sections by dots
	Def        string          // the default as YAML; "" for none
	Required   bool            // missing is an error
	Words      func() []string // the legal words; nil: any
	Span       Span            // the legal numbers, times in seconds, sizes in bytes
	SchemeSpan Span            // the limits of a key of a scheme, which scheme.Params.Check enforces
	Text       *TextForm       // the form of a text; nil: any
	single     bool            // the number ends in float32 arithmetic
	Items      int             // fewest items of a list
	Only       *Condition      // the key exists only then
	Doc        string
	Idle       string // of a number of a scheme: what it does nothing beyond; see the package
}

// Values lists the legal words; nil: any. The list is not cached, because schemes may be added at run time.
func (s *Spec) Values() []string {
	if s.Words == nil {
		return nil
	}
	return s.Words()
}

// Condition ties a key to the value of another key that stands before it in the table.
type Condition struct {
	Path  string
	Words func() []string // not cached, because policies may be added at run time
}

// Leaf is a key bound to its destination.
type Leaf struct {
	*Spec
	Ptr  any        // *string, *int, ... into the Config
	Path string     // from the root: sync[1].match
	Key  *yaml.Node // the key in the YAML; nil: not given
	Node *yaml.Node // its value
	Bad  bool       // a problem with the value has been reported
}

// IsDefault reports whether the value is the default, given or not.
func (l *Leaf) IsDefault() bool { return l.Def != "" && defaultText(l.Ptr) == l.Def }

// Meaning returns the default hint: what the key is for, and its default.
func (l *Leaf) Meaning() string {
	hint := diag.LastName(l.Path) + ": " + l.Doc
	if l.Def != "" {
		hint += " (default " + l.Def + ")"
	}
	return hint
}

// Number returns the value of a key with a number; otherwise 0.
func (l *Leaf) Number() float64 {
	switch v := reflect.ValueOf(l.Ptr).Elem(); {
	case v.CanInt():
		return float64(v.Int())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

// pattern is the Pattern of the path.
func (l *Leaf) pattern() string { return Pattern(l.Path) }

var indices = regexp.MustCompile(`\[[0-9]+\]`)

// Pattern leaves the indices out of a path: sync[].match for sync[1].match.
func Pattern(path string) string { return indices.ReplaceAllString(path, "[]") }

// Table is the leaves of one mapping: the whole file, one rule or one fault.
type Table struct {
	Prefix   string // "" or sync[1]
	Leaves   []*Leaf
	ByPath   map[string]*Leaf
	Sections map[string]*yaml.Node // each section's key, nil while it was not met
	Deltas   bool                  // of a rule: it pushes deltas
}

// SetDefault gives a key of this table alone another default.
func (t *Table) SetDefault(path, def string) {
	s := *t.ByPath[path].Spec
	s.Def = def
	t.ByPath[path].Spec = &s
}

// WordName is the key that a plain word stands for, where the table has a key that is a section as well: baseline: pslite
// is short for baseline: {name: pslite}, beside which the section's other keys may stand.
const WordName = "name"

// Leaf is the key at a path; nil if the table has none. The name in a section that has a word is that word.
func (t *Table) Leaf(path string) *Leaf {
	if section, ok := strings.CutSuffix(path, "."+WordName); ok && t.HasWord(section) {
		path = section
	}
	return t.ByPath[path]
}

// HasWord says whether a section may be a plain word, too.
func (t *Table) HasWord(section string) bool {
	_, is := t.Sections[section]
	return is && t.ByPath[section] != nil
}

// Below lists the names that may stand directly in a section, in the order of the table.
func (t *Table) Below(section string) []string {
	var names []string
	seen := map[string]bool{}
	if section != "" && t.HasWord(section) {
		names = append(names, WordName)
	}
	for _, l := range t.Leaves {
		rest, in := l.Spec.Path, true
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

// Holds reports whether the key exists with the current values. known is false if the deciding key is itself wrong.
func (t *Table) Holds(l *Leaf) (holds, known bool) {
	if l.Only == nil {
		return true, true
	}
	by := t.ByPath[l.Only.Path]
	if by.Bad || by.Required && by.Key == nil {
		return false, false
	}
	return t.Met(l), true
}

// Met is Holds for a table without problems.
func (t *Table) Met(l *Leaf) bool {
	return l.Only == nil || slices.Contains(l.Only.Words(), *t.ByPath[l.Only.Path].Ptr.(*string))
}

// Excuse marks a key, or all keys of a section, as reported, unless they are given, so that they are not reported as missing.
func (t *Table) Excuse(path string) {
	for _, l := range t.Leaves {
		if l.Key == nil && (l.Spec.Path == path || strings.HasPrefix(l.Spec.Path, path+".")) {
			l.Bad = true
		}
	}
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
	Idle     string // of a number of a scheme: what it does nothing beyond; see the package
}

// All lists every key, except for the keys of single schemes, which are in the table of schemes.
func All() []Key {
	var out []Key
	list := func(prefix string, leaves []*Leaf) {
		for _, l := range leaves {
			k := Key{Path: diag.Join(prefix, l.Spec.Path), Type: TypeName(l), Default: l.Def, Values: l.Values(),
				Required: l.Required, Limit: LimitText(l), Doc: l.Doc}
			if l.Only != nil {
				k.With = l.Only.Path + ": " + diag.OrList(l.Only.Words())
			}
			out = append(out, k)
		}
	}
	list("", Bind("", TopKeys, &settings.Config{}).Leaves)
	list("sync[]", Bind("", RuleKeys, &settings.Rule{}).Leaves)
	list("sync[]", BindPhased("", &settings.Rule{}, &[]settings.Phase{}).Leaves[1:2])
	list("sync[].schemes[]", Bind("", PhaseKeys, &settings.Phase{}).Leaves)
	list("faults[]", Bind("", FaultKeys, &settings.Fault{}).Leaves)
	return out
}

// LimitText words the limits of a key's numbers, in the key's unit.
func LimitText(l *Leaf) string {
	show := diag.FormatNumber
	switch l.Ptr.(type) {
	case *time.Duration, *workload.Cost:
		show = func(s float64) string { return diag.FormatNumber(s) + "s" }
	case *ByteSize:
		show = func(b float64) string { return diag.FormatSize(int64(b)) }
	case *int, *int64, *uint64, *[]int, *[]int64:
		show = diag.FormatWhole
	}
	if !l.Span.Set {
		return ""
	}
	return l.Span.want(show)
}

// TypeName says what kind of value a key takes.
func TypeName(l *Leaf) string {
	switch l.Ptr.(type) {
	case *string:
		if l.Values() != nil {
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
	case *ByteSize:
		return "size"
	case *WorkerIndex:
		return `whole number or "*"`
	case *settings.Until:
		return "whole number, {epochs: number} or {straggler: shows or gone, factor: number, rounds: whole number}"
	case *workload.Cost:
		return "time or {fixed: time, per_sample: time}"
	case *csv.Columns:
		return "{column: " + strings.Join(csv.KindNames(), " or ") + "}"
	}
	return "list"
}

// TextForm is what a text must look like.
type TextForm struct {
	*regexp.Regexp
	refusal func(text string) string // of a text that does not match: "what; hint"
	Whole   bool                     // whole numbers are such texts, too
}

// textForms are those that tags name.
var textForms = map[string]*TextForm{"run name": &runName, "glob": &glob, "path": &filePath,
	"parameter file": &parameterFile, "link rates": &linkRates, "shapes file": &shapesFile, "word": &word, "fingerprint": &fingerprint,
	"column": &column}

var (
	runName = TextForm{Regexp: regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`), refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " does not name a folder; use letters, digits, - _ . (not first: - .), at most 100"
	}}
	glob = TextForm{Regexp: regexp.MustCompile(`^[A-Za-z0-9_.*?-]+$`), refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " is not a pattern of parameter names; use a name such as fc1.weight, with * for " +
			"any characters and ? for one"
	}}
	filePath = TextForm{Regexp: regexp.MustCompile(`^[^\x00]+$`), refusal: func(s string) string {
		if s == "" {
			return "the path is empty; name a file or folder"
		}
		return "the path holds a zero byte; name a file or folder"
	}}
	shapesFile = TextForm{Regexp: regexp.MustCompile(`^[^\x00]+\.shapes$`), refusal: func(s string) string {
		if !filePath.MatchString(s) {
			return filePath.refusal(s)
		}
		return diag.Clip(strconv.Quote(s)) + " does not end in .shapes; name the file that fluentps probe CONFIG --out FILE.shapes writes"
	}}
	word = TextForm{Regexp: regexp.MustCompile(`^[^\x00]+$`), refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " is no argument of a program; write one without zero bytes, and at least one letter"
	}}
	column = TextForm{Regexp: regexp.MustCompile(columnText), Whole: true, refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " is no column; write a name of the header, or a number from 1"
	}}
	fingerprint = TextForm{Regexp: regexp.MustCompile(`^[!-~]{1,128}$`), refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " is not a fingerprint; use 1 to 128 letters, digits and signs without spaces"
	}}
	linkRates = TextForm{Regexp: regexp.MustCompile(
		`^([A-Za-z0-9._-]+=)?[0-9.]+ ?[kKMGT]?(bit|B)(/s)?(, ?([A-Za-z0-9._-]+=)?[0-9.]+ ?[kKMGT]?(bit|B)(/s)?)*$`), refusal: func(s string) string {
		return diag.Clip(strconv.Quote(s)) + " is not a rate; write it with its unit, as in 10Gbit, 200Mbit or 25MB, and " +
			"those of single hosts after it: 10Gbit,node3=1Gbit"
	}}
	parameterFile = TextForm{Regexp: regexp.MustCompile(`^[^\x00]+\.(safetensors|npz)$`), refusal: func(s string) string {
		if !filePath.MatchString(s) {
			return filePath.refusal(s)
		}
		return diag.Clip(strconv.Quote(s)) + " does not end in .safetensors or .npz, which selects the format of the file; choose one of the two"
	}}
)
