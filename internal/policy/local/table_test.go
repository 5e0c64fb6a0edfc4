package local

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is what the tables of policies and of periods have in common.
type row struct{ name, rule, source string }

func rows() (all []row) {
	for _, e := range All {
		all = append(all, row{e.Name, e.Rule, e.Source})
	}
	for _, e := range Periods {
		all = append(all, row{e.Name, e.Rule, e.Source})
	}
	return all
}

var (
	lowerCase = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	tag       = regexp.MustCompile(`\[[PQAMRX](, [PQAMRX])*\]`)
	unsure    = regexp.MustCompile(`\[[^\]]*[AMR][^\]]*\]`)
)

// Each name is there once. Each source has an evidence tag or is ours, and where nobody has read it the table says that the rule is
// reconstructed, or a correction of it.
func TestTheTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if !lowerCase.MatchString(r.name) || seen[r.name] {
			t.Errorf("%q is no name in lower case, or is there twice", r.name)
		}
		seen[r.name] = true
		if r.rule == "" || strings.ContainsAny(r.rule+r.source, "|\n") {
			t.Errorf("%s: rule %q, source %q", r.name, r.rule, r.source)
		}
		if r.source != "ours" && !tag.MatchString(r.source) {
			t.Errorf("%s: no letter in brackets grades the source %q", r.name, r.source)
		}
		if unsure.MatchString(r.source) && !strings.Contains(r.source, "reconstructed") {
			t.Errorf("%s: the source %q was not read, and it is not said to be reconstructed", r.name, r.source)
		}
	}
	for i, e := range All {
		if got, ok := All.Lookup(e.Name); !ok || got.Name != e.Name || All.Names()[i] != e.Name {
			t.Errorf("%s is found as %q, %t", e.Name, got.Name, ok)
		}
		if (e.make == nil) != (e.Name == None) {
			t.Errorf("%s makes a policy: %t", e.Name, e.make != nil)
		}
	}
	for i, e := range Periods {
		if e.make == nil || Periods.Names()[i] != e.Name {
			t.Errorf("period %s makes none, or is called %s", e.Name, Periods.Names()[i])
		}
	}
	if d := Defaults(); All[0].Name != d.Policy || Periods[0].Name != d.Period.Name || d.IsSet() {
		t.Errorf("the first policy is %s, the first period %s, and the defaults are %+v", All[0].Name, Periods[0].Name, d)
	}
	if _, ok := All.Lookup("averging"); ok {
		t.Error("a name that is none is found")
	}
}

// The page has a row for each policy and period, in the order of the table.
func TestReadmeHasEveryPolicy(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, last := strings.Split(string(page), "\n"), -1
	for _, r := range rows() {
		line := fmt.Sprintf("| `%s` | %s | %s |", r.name, r.rule, r.source)
		switch at := slices.Index(lines, line); {
		case at < 0:
			t.Errorf("README.md lacks the row\n%s", line)
		case at < last:
			t.Errorf("README.md has the row of %s before that of an earlier one", r.name)
		default:
			last = at
		}
	}
}

// The defaults of a policy are keys that it has.
func TestDefaultsOfAPolicyAreItsKeys(t *testing.T) {
	keys := []string{"local.steps", "local.outer.name", "local.outer.lr", "local.outer.momentum"}
	for _, e := range All {
		for path := range e.Defaults {
			if !slices.Contains(keys, path) || e.Outer != "" && path == "local.outer.name" {
				t.Errorf("%s has a default of %s", e.Name, path)
			}
		}
	}
}
