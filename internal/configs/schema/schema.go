// Package schema writes the JSON Schema of the YAML from the tables of package keys. An editor that reads it completes keys, explains them,
// and marks what is wrong.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset/csv"
)

// form is a JSON Schema of draft 7. The values of its maps are *form, or false for a key that is forbidden.
type form struct {
	Draft       string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	Type        any    `json:"type,omitempty"` // a word, or a list of them
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	Pattern     string `json:"pattern,omitempty"`
	limits
	Items       *form            `json:"items,omitempty"`
	ItemsMin    int              `json:"minItems,omitempty"`
	ItemsMax    int              `json:"maxItems,omitempty"`
	Unique      bool             `json:"uniqueItems,omitempty"`
	Properties  map[string]any   `json:"properties,omitempty"`
	Patterns    map[string]*form `json:"patternProperties,omitempty"`
	Further     any              `json:"additionalProperties,omitempty"` // false: no others
	Hidden      bool             `json:"doNotSuggest,omitempty"`         // by editors: another part of the schema says more
	PropsMin    int              `json:"minProperties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Any         []*form          `json:"anyOf,omitempty"`
	All         []*form          `json:"allOf,omitempty"`
	If          *form            `json:"if,omitempty"`
	Then        *form            `json:"then,omitempty"`
	Else        *form            `json:"else,omitempty"`
	Definitions map[string]*form `json:"definitions,omitempty"`
}

// limits are the smallest and the largest value of a number; nil: there is none.
type limits struct {
	Min   *float64 `json:"minimum,omitempty"`
	Max   *float64 `json:"maximum,omitempty"`
	Above *float64 `json:"exclusiveMinimum,omitempty"`
	Below *float64 `json:"exclusiveMaximum,omitempty"`
}

const (
	defined = "#/definitions/"
	draft   = "http://json-schema.org/draft-07/schema#"
)

// JSON returns the JSON Schema of the YAML, from the tables by which configurations are read. It checks each key by itself, and the keys
// that exist only with some values of another key. It does not have the other checks across keys.
func JSON() []byte {
	all := map[string]*form{
		"rule":   ruleForm(keys.Bind("", keys.RuleKeys, &settings.Rule{})),
		"phased": objectOf(keys.BindPhased("", &settings.Rule{}, &[]settings.Phase{}), "", nil),
		"phase":  ruleForm(keys.Bind("", keys.PhaseKeys, &settings.Phase{})),
		"fault":  objectOf(keys.Bind("", keys.FaultKeys, &settings.Fault{}), "", nil),
	}
	for _, e := range scheme.All {
		all["scheme."+e.Name] = schemeForm(e)
	}
	s := objectOf(keys.Bind("", keys.TopKeys, &settings.Config{}), "", all)
	all[keys.SweepKey], all["setting"] = sweepForms()
	s.Properties[keys.SweepKey] = &form{Ref: defined + keys.SweepKey}
	s.Draft, s.Title, s.Definitions = draft, "A run of fluentps", all
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", " ")
	if err := to.Encode(s); err != nil {
		panic("configs: the schema holds only words and numbers: " + err.Error())
	}
	return compact(out.String())
}

// lineMax is the longest line that compact makes of several.
const lineMax = 160

// compact writes indented JSON with each object and each list that fits on one line.
func compact(indented string) []byte {
	var lines []string
	var open []int // lines that begin a block which has not ended
	for line := range strings.Lines(indented) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line)
		switch text := strings.TrimSpace(line); {
		case strings.HasSuffix(text, "{") || strings.HasSuffix(text, "["):
			open = append(open, len(lines)-1)
		case strings.HasPrefix(text, "}") || strings.HasPrefix(text, "]"):
			begin := open[len(open)-1]
			open = open[:len(open)-1]
			if whole, one := joined(lines[begin:]); one {
				lines = append(lines[:begin], whole)
			}
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// joined returns a block on one line, if it fits and if no inner block has several lines.
func joined(block []string) (line string, one bool) {
	line = block[0]
	for i, l := range block[1:] {
		if last := i == len(block)-2; !last && strings.ContainsAny(l[len(l)-1:], "{[") {
			return "", false
		} else if !last && i > 0 {
			line += " "
		}
		line += strings.TrimSpace(l)
	}
	return line, len(line) <= lineMax
}

// objectOf returns the schema of a section of a table; "" stands for the whole table. With definitions, it adds the keys and sections of
// that section to them, each by its path.
func objectOf(t *keys.Table, section string, definitions map[string]*form) *form {
	s := &form{Type: "object", Properties: map[string]any{}, Further: false}
	for _, name := range t.Below(section) {
		path := diag.Join(section, name)
		_, isSection := t.Sections[path]
		var of *form
		required := false
		if l := t.Leaf(path); l != nil {
			of, required = formOf(l), l.Required && l.Only == nil
		}
		if isSection {
			in := objectOf(t, path, definitions)
			switch {
			case of != nil:
				in = &form{Any: []*form{of, in}}
			case len(in.Required) > 0:
				required = true
			default:
				in.Type = []string{"object", "null"} // all of its keys are commented out
			}
			of = in
		}
		if required {
			s.Required = append(s.Required, name)
		}
		s.Properties[name] = of
		if definitions != nil {
			definitions[path], s.Properties[name] = of, &form{Ref: defined + path}
		}
	}
	s.All = conditionsOf(t, section)
	return s
}

// conditionsOf returns the conditions of keys that exist only with some values of a key of the section.
func conditionsOf(t *keys.Table, section string) (all []*form) {
	of := map[string]*form{}
	for _, l := range t.Leaves {
		if l.Only == nil {
			continue
		}
		by := l.Only.Path
		if t.HasWord(by) {
			by = diag.Join(by, keys.WordName)
		}
		name, in := strings.CutPrefix(by, prefixOf(section))
		if !in || strings.Contains(name, ".") {
			continue
		}
		id := by + " " + strings.Join(l.Only.Words(), " ")
		c := of[id]
		if c == nil {
			c = &form{If: &form{Properties: map[string]any{name: &form{Enum: words(l.Only.Words())}}}}
			if !slices.Contains(l.Only.Words(), t.Leaf(by).Def) {
				c.If.Required = []string{name}
			}
			of[id], all = c, append(all, c)
		}
		path := strings.Split(strings.TrimPrefix(l.Spec.Path, prefixOf(section)), ".")
		c.Else = c.Else.without(path)
		if l.Required {
			c.Then = &form{Required: append(c.Then.required(), path[0])}
		}
	}
	return all
}

func prefixOf(section string) string {
	if section == "" {
		return ""
	}
	return section + "."
}

func (s *form) required() []string {
	if s == nil {
		return nil
	}
	return s.Required
}

// without forbids a key, and makes the schema if there is none yet.
func (s *form) without(path []string) *form {
	if s == nil {
		s = &form{Properties: map[string]any{}}
	}
	if len(path) == 1 {
		s.Properties[path[0]] = false
		return s
	}
	in, _ := s.Properties[path[0]].(*form)
	s.Properties[path[0]] = in.without(path[1:])
	return s
}

// formOf is the schema of one value.
func formOf(l *keys.Leaf) *form {
	s := &form{Description: descriptionOf(l), Default: exampleOf(l)}
	switch l.Ptr.(type) {
	case *string:
		s.text(l)
	case *bool:
		s.Type = "boolean"
	case *int, *int64:
		s.number("integer", l)
	case *uint64:
		s.number("integer", l)
		s.Min = new(float64)
	case *float64:
		s.number("number", l)
	case *time.Duration:
		s.Type, s.Pattern = "string", timeSchema
	case *workload.Cost:
		s.Any = costForms()
	case *csv.Columns:
		s.Type, s.Further = "object", &form{Enum: words(csv.KindNames())}
	case *keys.ByteSize:
		s.Type, s.Pattern = "string", keys.SizeForm.String()
	case *keys.WorkerIndex:
		s.Any = []*form{{Type: "integer", limits: limits{Min: new(float64)}}, {Enum: []any{"*"}}}
	case *settings.Until:
		iterations, epochs := &form{}, &form{}
		iterations.number("integer", &keys.Leaf{Spec: &keys.IterationsSpec})
		epochs.number("number", &keys.Leaf{Spec: &keys.EpochsSpec})
		s.Any = []*form{iterations,
			{Type: "object", Properties: map[string]any{"epochs": epochs}, Required: []string{"epochs"}, Further: false}, awaitForm()}
	case *[]string:
		s.list(l, new(string))
	case *[]int, *[]int64:
		s.list(l, new(int64))
	case *[]float64:
		s.list(l, new(float64))
	case *[]settings.Rule:
		s.items(0, &form{If: &form{Required: []string{"schemes"}}, Then: &form{Ref: defined + "phased"}, Else: &form{Ref: defined + "rule"}})
	case *[]settings.Phase:
		s.items(2, &form{Ref: defined + "phase"})
	case *[]settings.Fault:
		s.items(0, &form{Ref: defined + "fault"})
	default:
		panic(fmt.Sprintf("configs: no schema for %T of %s", l.Ptr, l.Path))
	}
	return s
}

// descriptionOf is what an editor shows.
func descriptionOf(l *keys.Leaf) string {
	more := ""
	switch l.Ptr.(type) {
	case *time.Duration:
		more = "; a time, such as 30s, 10m or 1h30m"
	case *workload.Cost:
		more = keys.CostText
	case *keys.ByteSize:
		more = "; a size, such as 64KiB, 4MiB or 1MB"
	}
	if limit := keys.LimitText(l); limit != "" {
		more += "; " + strings.TrimPrefix(limit, "must be ")
	}
	if l.Def != "" {
		more += "; default " + l.Def
	}
	if l.Only != nil {
		more += "; only with " + l.Only.Path + ": " + diag.OrList(l.Only.Words())
	}
	return l.Doc + more
}

// exampleOf is the default as JSON; nil for none.
func exampleOf(l *keys.Leaf) (v any) {
	if err := yaml.Unmarshal([]byte(l.Def), &v); err != nil {
		panic("configs: default of " + l.Path + ": " + err.Error())
	}
	return v
}

// words are the legal words of a key, as YAML reads each: true as a boolean, and 1 as a number, too.
func words(all []string) (values []any) {
	for _, word := range all {
		values = append(values, word)
		var v any
		if err := yaml.Unmarshal([]byte(word), &v); err == nil && v != nil && v != word {
			values = append(values, v)
		}
	}
	return values
}

func (s *form) text(l *keys.Leaf) {
	s.Enum = words(l.Values())
	if l.Values() == nil {
		s.Type = "string"
	}
	if l.Text != nil {
		if s.Pattern = l.Text.String(); l.Text.Whole {
			s.Type = []string{"string", "integer"}
		}
	}
}

func (s *form) number(kind string, l *keys.Leaf) {
	s.Type = kind
	for _, limits := range []keys.Span{l.Span, l.SchemeSpan} {
		s.limit(limits)
	}
}

func (s *form) limit(limits keys.Span) {
	if !limits.Set {
		return
	}
	low, high := &s.Min, &s.Max
	if limits.LoOpen {
		low = &s.Above
	}
	if limits.HiOpen {
		high = &s.Below
	}
	if !math.IsInf(limits.Lo, -1) {
		*low = &limits.Lo
	}
	if !math.IsInf(limits.Hi, 1) {
		*high = &limits.Hi
	}
}

// list is a list of plain values, such as item points to.
func (s *form) list(l *keys.Leaf, item any) {
	one := *l.Spec
	one.Doc, one.Def, one.Only = "", "", nil
	of := formOf(&keys.Leaf{Spec: &one, Ptr: item})
	of.Description = ""
	s.items(l.Items, of)
	s.Unique = l.Values() != nil
}

func (s *form) items(least int, of *form) {
	s.Type, s.Items, s.ItemsMin, s.ItemsMax = "array", of, least, keys.ItemsMax
}

// ruleForm returns the schema of a rule or of an item of schemes. Its other keys depend on its scheme.
func ruleForm(t *keys.Table) *form {
	s := objectOf(t, "", nil)
	for _, e := range scheme.All {
		for _, name := range keys.OfScheme(e) {
			s.Properties[name] = &form{Hidden: true}
		}
		s.All = append(s.All, &form{
			If:   &form{Properties: map[string]any{"scheme": &form{Enum: []any{e.Name}}}, Required: []string{"scheme"}},
			Then: &form{Ref: defined + "scheme." + e.Name},
		})
	}
	return s
}

// schemeForm returns the schema of the keys of a scheme. It forbids the keys that only other schemes have.
func schemeForm(e scheme.Entry) *form {
	s := &form{Description: e.Rule, Properties: map[string]any{"fold": &form{Default: e.Fold}}}
	for _, other := range scheme.All {
		for _, name := range keys.OfScheme(other) {
			s.Properties[name] = false
		}
	}
	for _, l := range keys.BindParams(e.Params()) {
		s.Properties[l.Spec.Path] = formOf(l)
	}
	return s
}
