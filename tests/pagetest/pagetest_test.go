package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = "# A page\n\nSimulated by `one`:\n\n| s | a | b |\n|---|---|---|\n| 1 | 2.00 | `x` 3 |\n| 2 | 4.00 | " +
	"|\n\nMeasured 2026-11-01 on it by `two`:\n\n| s | a |\n|---|---|\n| 1 | 7 |\n"

func write(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestATableIsWhatItsCommandMakes(t *testing.T) {
	name := write(t)
	for _, c := range []struct {
		command, made string
		share         float64
		want          string // in the error; empty: none
	}{
		{"one", "| s | a | b |\n|---|---|---|\n| 1 | 2.00 | `x` 3 |\n| 2 | 4.00 | |\n", 0, ""},
		{"one", "| s | a |\n|---|---|\n| 1 | 2.00 |\n| 2 | 4.00 |\n", 0, ""},
		{"one", "| s | a |\n|---|---|\n| 1 | 2.01 |\n| 2 | 4.00 |\n", 0, `row "1", column "a": the page says "2.00", and ` +
			"`one`" + ` says "2.01"`},
		{"one", "| s | a |\n|---|---|\n| 1 | 2.02 |\n| 2 | 4.04 |\n", 0.01, ""},
		{"one", "| s | a |\n|---|---|\n| 2 | 4.04 |\n| 1 | 2.02 |\n", 0.01, ""},
		{"one", "| s | a |\n|---|---|\n| 2 | 4.10 |\n| 1 | 2.00 |\n", 0.01, `the page says "4.00"`},
		{"one", "| s | b |\n|---|---|\n| 1 | `y` 3 |\n| 2 | |\n", 0.5, "`y` 3"},
		{"one", "| s | a |\n|---|---|\n| 1 | 2.00 |\n", 0, "the table has 2 rows, and `one` makes 1"},
		{"one", "| s | c |\n|---|---|\n| 1 | 2.00 |\n| 2 | 4.00 |\n", 0, `no column "c"`},
		{"two", "| s | a |\n|---|---|\n| 1 | 7 |\n", 0, ""},
		{"three", "| s | a |\n|---|---|\n| 1 | 7 |\n", 0, "no table is by `three`"},
	} {
		err := Compare(name, c.command, c.made, c.share)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v, want %q", c.command, c.made, err, c.want)
		}
	}
}

func TestATableIsRewritten(t *testing.T) {
	name := write(t)
	for _, made := range []string{"| a |\n|---|\n| 5 |\n| 6 |\n",
		"| s | a | b | c |\n|---|---|---|---|\n| 1 | 5 | 8 | |\n| 3 | 9 | | 1 |\n| 1 | 1 | 1 | 2 |\n"} {
		if err := Rewrite(name, "one", made); err != nil {
			t.Fatal(err)
		}
		if err := Compare(name, "one", made, 0); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(page, "| s | a | b |\n|---|---|---|\n| 1 | 2.00 | `x` 3 |\n| 2 | 4.00 | |\n",
		"| s | a | b | c |\n|---|---|---|---|\n| 1 | 5 | 8 | |\n| 3 | 9 | | 1 |\n| 1 | 1 | 1 | 2 |\n", 1); string(got) != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	if err := Rewrite(name, "one", "| a |\n|---|\n| 5 |\n"); err == nil || !strings.Contains(err.Error(), "columns of another source") {
		t.Errorf("rows of some columns: %v", err)
	}
}
