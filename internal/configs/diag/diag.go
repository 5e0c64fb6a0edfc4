// Package diag has the problems of a configuration: what is wrong, where that stands in the source, and the way out. It reads the source
// into a tree of YAML nodes, because every place is that of a node. It also has the words and the forms of numbers that messages share.
package diag

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity is the weight of a diagnostic: whether a run may start in spite of it.
type Severity uint8

const (
	Fatal   Severity = iota // the configuration is refused
	Warning                 // the run may start; check --strict refuses it
	Note                    // the program did something that the user may not expect; check --strict accepts it
)

// String returns the word of the JSON form.
func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// MarshalText makes the JSON form say "error", "warning" or "note".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ProblemsMax is the limit on the problems of a configuration, so that a wrong file of a megabyte does not fill the terminal.
const ProblemsMax = 200

// excerptRunes is the longest piece of a source line that is shown.
const excerptRunes = 120

// textRunes is the longest message, hint, or source line in JSON. The wrong value may have a megabyte.
const textRunes = 2000

// Diagnostic is one problem, where it is and what to do about it.
type Diagnostic struct {
	File     string   `json:"file"`           // name of the file, "--set", or "env NAME"
	Line     int      `json:"line"`           // from 1; for --set the number of the setting; 0: the file could not be read
	Col      int      `json:"col"`            // from 1, in characters
	Path     string   `json:"path,omitempty"` // train.optimizer.lr; "" for the file as a whole
	Msg      string   `json:"message"`        // what is wrong, with value and limit
	Hint     string   `json:"hint,omitempty"` // the way out
	Severity Severity `json:"severity"`
	Source   string   `json:"source,omitempty"` // the line that File:Line names
	Shape    bool     `json:"-"`                // the JSON Schema refuses it too: a key or a value is wrong by itself
}

// String is the one-line form: file:line:col: path: what; hint.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Col)
	}
	b.WriteString(": ")
	if d.Severity != Fatal {
		b.WriteString(d.Severity.String() + ": ")
	}
	if d.Path != "" {
		b.WriteString(d.Path + ": ")
	}
	b.WriteString(d.Msg)
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	return b.String()
}

// excerpt is the source line and a caret under the column. Tabs stay tabs in the caret's line, so that the
// two agree whatever a tab's width is.
func (d Diagnostic) excerpt() string {
	if d.Line == 0 || d.Source == "" {
		return ""
	}
	line := []rune(d.Source)
	col := min(max(d.Col, 1), len(line)+1)
	lo := 0
	if len(line) > excerptRunes {
		lo = min(max(0, col-1-excerptRunes/2), len(line)-excerptRunes)
		line = line[lo : lo+excerptRunes]
	}
	pad := make([]rune, 0, excerptRunes)
	for _, r := range line[:col-1-lo] {
		if r != '\t' {
			r = ' '
		}
		pad = append(pad, r)
	}
	number := fmt.Sprintf("%4d", d.Line)
	return fmt.Sprintf("%s | %s\n%s | %s^\n", number, string(line), strings.Repeat(" ", utf8.RuneCountInString(number)), string(pad))
}

// Printable makes a diagnostic safe for a terminal: keys and source lines may hold anything.
func (d Diagnostic) Printable() Diagnostic {
	d.File, d.Path = ClipTo(Visible(d.File), 1000), ClipTo(Visible(d.Path), 200)
	d.Msg, d.Hint, d.Source = ClipTo(Visible(d.Msg), textRunes), ClipTo(Visible(d.Hint), textRunes), Visible(d.Source)
	return d
}

// Visible puts a question mark in the place of control characters and line breaks; tabs stay.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, s)
}

// Diagnostics is the list of all problems, by source and position.
type Diagnostics []Diagnostic

// Errors returns the diagnostics that refuse the configuration.
func (ds Diagnostics) Errors() Diagnostics { return ds.with(Fatal) }

// Warnings returns the diagnostics that only check --strict refuses.
func (ds Diagnostics) Warnings() Diagnostics { return ds.with(Warning) }

// Notes returns the diagnostics that only inform.
func (ds Diagnostics) Notes() Diagnostics { return ds.with(Note) }

func (ds Diagnostics) with(s Severity) Diagnostics {
	out := Diagnostics{}
	for _, d := range ds {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Once returns the list without duplicates, in order.
func (ds Diagnostics) Once() (once Diagnostics) {
	seen := map[Diagnostic]bool{}
	for _, d := range ds {
		if !seen[d] {
			seen[d] = true
			once = append(once, d)
		}
	}
	return once.Sorted()
}

// Failed reports whether any of them refuses the configuration.
func (ds Diagnostics) Failed() bool { return len(ds.Errors()) > 0 }

// Write prints each one with its source line and a caret under the column, errors first, then warnings.
func (ds Diagnostics) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, d := range slices.Concat(ds.Errors(), ds.Warnings(), ds.Notes()) {
		fmt.Fprintf(b, "%s\n%s", d, d.excerpt())
	}
	return b.Flush()
}

// JSON returns the list as {"errors": [...], "warnings": [...], "notes": [...]}. All three members are always present.
func (ds Diagnostics) JSON() []byte {
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].Source = ClipTo(ds[i].Source, textRunes)
	}
	out, err := json.MarshalIndent(struct {
		Errors   Diagnostics `json:"errors"`
		Warnings Diagnostics `json:"warnings"`
		Notes    Diagnostics `json:"notes"`
	}{ds.Errors(), ds.Warnings(), ds.Notes()}, "", "  ")
	if err != nil {
		panic("configs: diagnostics hold only strings and numbers: " + err.Error())
	}
	return append(out, '\n')
}

// Sorted orders by source (the file, then the environment, then --set), then by position.
func (ds Diagnostics) Sorted() Diagnostics {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i], ds[j]
		if ra, rb := rank(a.File), rank(b.File); ra != rb {
			return ra < rb
		}
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return ds
}

// rank is the place of a source in the order of Sorted.
func rank(file string) int {
	switch {
	case file == SetName:
		return 2
	case strings.HasPrefix(file, EnvName):
		return 1
	}
	return 0
}

// What stands in the place of a file where a value comes from an override, and the prefix of our variables.
const (
	SetName   = "--set"
	EnvName   = "env " // the name of the variable follows
	EnvPrefix = "FLUENTPS_"
)
