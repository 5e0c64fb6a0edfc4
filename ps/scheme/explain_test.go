package scheme

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestExplain(t *testing.T) {
	datadriven.RunTest(t, "testdata/explain.txt", func(t *testing.T, d *datadriven.TestData) string {
		text, err := Explain(strings.TrimSpace(d.Input))
		if err != nil {
			return "error: " + strings.Replace(err.Error(), strings.Join(Names(), ", "), "<all schemes>", 1) + "\n" // a new one changes no golden
		}
		for _, line := range strings.Split(text, "\n") {
			if len(line) > textWidth {
				t.Errorf("line of %d columns, limit %d: %q", len(line), textWidth, line)
			}
		}
		return text
	})
}

// TestReadmeTable holds the README to one row per entry, in the order of the table, and to the tags used.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, _, _ := strings.Cut(string(text), "<!-- simulated: begin") // that table is the simulator's to check
	var got []string
	for _, line := range strings.Split(rules, "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	var want []string
	for _, e := range All {
		want = append(want, e.Row())
	}
	for k := range max(len(got), len(want)) {
		switch {
		case k >= len(got):
			t.Errorf("README.md lacks the row\n%s", want[k])
		case k >= len(want):
			t.Errorf("README.md has a row too many\n%s", got[k])
		case got[k] != want[k]:
			t.Errorf("README.md row %d is\n%s\nthe table says\n%s", k, got[k], want[k])
		}
	}
	for tag, meaning := range evidence {
		if !strings.Contains(string(text), "| "+tag+" | "+meaning+" |") {
			t.Errorf("README.md lacks the legend row for tag %s: %q", tag, meaning)
		}
	}
}

// TestEntries checks that every entry can fill what is generated from it.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All {
		for what, text := range map[string]string{"name": e.Name, "rule": e.Rule, "paper": e.Paper, "use": e.Use} {
			if text == "" || strings.ContainsAny(text, "|\n") {
				t.Errorf("%s: %s %q is empty or would break a table row", e.Name, what, text)
			}
		}
		if seen[e.Name] {
			t.Errorf("%s is in the table twice", e.Name)
		}
		seen[e.Name] = true
		if evidence[e.Evidence] == "" {
			t.Errorf("%s: evidence tag %q is not in the legend", e.Name, e.Evidence)
		}
		if e.Fold != FoldRank && e.Fold != FoldArrival {
			t.Errorf("%s: default fold %q", e.Name, e.Fold)
		}
		if err := e.Params().Check(); err != nil {
			t.Errorf("%s: the defaults fail their own check: %v", e.Name, err)
		}
		for _, d := range Docs(e.Params()) {
			if d.Key == "" || d.Doc == "" || d.Default == "" {
				t.Errorf("%s: key %q lacks a yaml tag, a doc tag or a default: %+v", e.Name, d.Key, d)
			}
		}
		if e.Bound != "" {
			of, key := e, e.Bound
			if other, rest, ok := strings.Cut(strings.TrimPrefix(e.Bound, "scheme: "), ", "); ok {
				of, _ = Lookup(other)
				key = rest
			}
			if !slices.ContainsFunc(Docs(of.Params()), func(d ParamDoc) bool { return d.Key == key }) {
				t.Errorf("%s: its bound is said to be %q, and %s has no such key", e.Name, e.Bound, of.Name)
			}
		}
		got, ok := Lookup(e.Name)
		if !ok || got.Name != e.Name {
			t.Errorf("Lookup(%q) = %q, %v", e.Name, got.Name, ok)
		}
	}
	if _, ok := Lookup("BSP"); ok {
		t.Error(`Lookup("BSP") found something; names are exact`)
	}
	if got := strings.Join(Names(), " "); !strings.HasPrefix(got, "bsp asp ssp ") || len(Names()) != len(All) {
		t.Errorf("Names() = %s", got)
	}
}
