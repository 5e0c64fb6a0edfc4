package scheme

import (
	"flag"
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
			// a new one changes no golden
			return "error: " + strings.Replace(err.Error(), strings.Join(All.Names(), ", "), "<all schemes>", 1) + "\n"
		}
		for _, line := range strings.Split(text, "\n") {
			if len(line) > textWidth {
				t.Errorf("line of %d columns, limit %d: %q", len(line), textWidth, line)
			}
		}
		return text
	})
}

// TestReadmeRows holds the README at the root to one row per scheme, in the order of the table. With -rewrite it writes them.
func TestReadmeRows(t *testing.T) {
	const name, heading = "../../README.md", "\n| scheme | what it does |\n|---|---|\n"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), heading)
	got, after, ok2 := strings.Cut(rest, "\n\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no table under%s", name, heading)
	}
	var rows []string
	for _, e := range All {
		rows = append(rows, e.Row())
	}
	want := strings.Join(rows, "\n")
	if got == want {
		return
	}
	if flag.Lookup("rewrite").Value.String() != "true" { // the flag of datadriven
		t.Fatalf("the schemes in %s are\n%s\nthe table says\n%s\n(go test ./ps/scheme -run TestReadmeRows -rewrite)", name, got, want)
	}
	if err := os.WriteFile(name, []byte(before+heading+want+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEvidenceLegend holds the README of this package to the tags that are used.
func TestEvidenceLegend(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
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
		for what, text := range map[string]string{"name": e.Name, "short": e.Short, "rule": e.Rule, "paper": e.Paper, "use": e.Use} {
			if text == "" || strings.ContainsAny(text, "|\n") {
				t.Errorf("%s: %s %q is empty or would break a table row", e.Name, what, text)
			}
		}
		if len(e.Short) > 90 {
			t.Errorf("%s: the short line has %d characters, at most 90: %q", e.Name, len(e.Short), e.Short)
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
				of, _ = All.Lookup(other)
				key = rest
			}
			if !slices.ContainsFunc(Docs(of.Params()), func(d ParamDoc) bool { return d.Key == key }) {
				t.Errorf("%s: its bound is said to be %q, and %s has no such key", e.Name, e.Bound, of.Name)
			}
		}
		got, ok := All.Lookup(e.Name)
		if !ok || got.Name != e.Name {
			t.Errorf("All.Lookup(%q) = %q, %v", e.Name, got.Name, ok)
		}
	}
	if _, ok := All.Lookup("BSP"); ok {
		t.Error(`All.Lookup("BSP") found something; names are exact`)
	}
	if got := strings.Join(All.Names(), " "); !strings.HasPrefix(got, "bsp asp ssp ") || len(All.Names()) != len(All) {
		t.Errorf("All.Names() = %s", got)
	}
}
