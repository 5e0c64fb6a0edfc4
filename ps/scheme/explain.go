package scheme

import (
	"fmt"
	"reflect"
	"strings"
)

// ParamDoc describes one key, for explain, completion and a schema.
type ParamDoc struct {
	Key     string
	Default string
	Allowed string   // for readers: "true | false", "soft | lazy | block", "integer >= 0"
	Values  []string // the allowed values, where they are a list
	Doc     string   // one sentence without a full stop
}

// Docs describes the keys of p in the order of its fields, with their present values as defaults. It reads the field
// tags: yaml (the key), doc, values (a list with commas), min and max.
func Docs(p Params) []ParamDoc {
	v := reflect.ValueOf(p).Elem()
	docs := make([]ParamDoc, 0, v.NumField())
	for k := range v.NumField() {
		tag := v.Type().Field(k).Tag
		d := ParamDoc{
			Key:     tag.Get("yaml"),
			Default: fmt.Sprint(v.Field(k).Interface()),
			Doc:     tag.Get("doc"),
		}
		if list := tag.Get("values"); list != "" {
			d.Values = strings.Split(list, ",")
		}
		switch kind := v.Field(k).Kind(); {
		case d.Values != nil:
			d.Allowed = strings.Join(d.Values, " | ")
		case kind == reflect.Bool:
			d.Allowed = "true | false"
		case kind == reflect.Int64:
			d.Allowed = "integer"
		default:
			d.Allowed = "number"
		}
		switch least, most := tag.Get("min"), tag.Get("max"); {
		case most != "":
			d.Allowed += " from " + least + " to " + most
		case least != "":
			d.Allowed += " >= " + least
		}
		docs = append(docs, d)
	}
	return docs
}

// commonDocs describes the keys that every rule may set beside the keys of its scheme.
func (e Entry) commonDocs() []ParamDoc {
	fold := ParamDoc{
		Key: "fold", Default: string(e.Fold), Allowed: "rank | arrival", Values: []string{"rank", "arrival"},
		Doc: "rank stages pushes and adds them in rank order when their iteration closes; arrival adds them as they arrive",
	}
	if _, err := e.New(Env{Workers: 2, Shards: []int32{0}, Servers: 1}, Common{Fold: FoldRank}, e.Params()); err != nil {
		fold.Allowed, fold.Values = "arrival", []string{"arrival"}
		fold.Doc = "pushes are added as they arrive; with these keys none can be staged"
	}
	docs := []ParamDoc{fold}
	if e.Push != "" {
		docs = append(docs, ParamDoc{Key: "push", Default: e.Push, Allowed: e.Push,
			Doc: "what a push carries; the worker steps with its own optimizer, and update: add adds the change"})
	}
	if e.Weight == NoWeight {
		return docs
	}
	weight := ParamDoc{
		Key: "weight", Default: e.WeightText(), Allowed: "number > 0",
		Doc: "share of one push in an iteration where each push is a commit; scales the learning rate",
	}
	if e.Weight == DeltaWhole {
		weight.Doc += "; with 1 an iteration of N workers moves the parameters N times as far as one worker's step: divide lr by N"
	}
	return append(docs, weight)
}

// evidence explains the tags, in the words of the README of this package.
var evidence = map[string]string{
	"P": "read in the paper's own text",
	"C": "read in the source code of the authors or the project",
	"A": "only the abstract or a summary was available",
	"R": "reconstructed from the sources named; the paper's own wording was not available",
	"M": "recalled, not verified",
	"X": "our own derivation",
}

// textWidth is the column at which Explain breaks lines, for a terminal of 80 columns.
const textWidth = 78

// Explain describes a scheme: its rule, its parameters with defaults and allowed values, its source with the evidence
// tag, and when to use it. Its error lists the schemes.
func Explain(name string) (string, error) {
	e, ok := All.Lookup(name)
	if !ok {
		return "", fmt.Errorf("unknown scheme %q; the schemes are %s", name, strings.Join(All.Names(), ", "))
	}
	var b strings.Builder
	b.WriteString(e.Name + "\n\n")
	field := func(label, text string) { wrap(&b, fmt.Sprintf("  %-10s", label), text) }
	field("rule", e.Rule)
	field("lead", leadText(e))
	field("use", e.Use)
	field("paper", fmt.Sprintf("%s [%s: %s]", e.Paper, e.Evidence, evidence[e.Evidence]))
	b.WriteString("\n  keys of a rule under sync:, with their defaults\n")
	for _, d := range append(Docs(e.Params()), e.commonDocs()...) {
		fmt.Fprintf(&b, "    %s: %s   (%s)\n", d.Key, d.Default, d.Allowed)
		wrap(&b, "        ", d.Doc)
	}
	b.WriteString("\n")
	v := "the smallest c of the workers in the run"
	if e.Behind {
		v = "the number of iterations closed"
	}
	wrap(&b, "  ", "c is the number of iterations a worker has completed, v "+v+", N the number of workers of the run.")
	return b.String(), nil
}

func leadText(e Entry) string {
	lead, ok := e.LeadMax(e.Params())
	if !ok {
		return "a running worker may lead the slowest by any number of iterations"
	}
	if e.Behind {
		return "a worker starts only the open iteration; a slow worker may be any number of iterations behind it"
	}
	return fmt.Sprintf("a running worker leads the slowest by at most %d iterations with the defaults", lead)
}

// wrap writes text after head. It breaks lines at textWidth and indents them by the width of head.
func wrap(b *strings.Builder, head, text string) {
	line := head
	for k, word := range strings.Fields(text) {
		if k > 0 && len(line)+1+len(word) > textWidth {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(head)) + word
			continue
		}
		if k > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// Row is the line of the README at the root for this scheme.
func (e Entry) Row() string { return fmt.Sprintf("| `%s` | %s |", e.Name, e.Short) }
