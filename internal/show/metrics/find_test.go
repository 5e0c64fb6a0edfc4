package metrics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A folder stands for the run in it that began last, also for that of a job script, which makes no link. Of the points of a sweep one
// must be named.
func TestFindRun(t *testing.T) {
	const early, late = "20260101T000000Z-local", "20260102T000000Z-7"
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		runs map[string]int // by folder the day on which it began
		link string
		want string // "": it is refused, with these words
		says string
	}{
		"itself":                     {runs: map[string]int{".": 1}, want: "."},
		"latest":                     {runs: map[string]int{early: 1, late: 2}, link: late, want: late},
		"an earlier one by its link": {runs: map[string]int{early: 1, late: 2}, link: early, want: early},
		"no link":                    {runs: map[string]int{early: 1, late: 2}, want: late},
		"a link to nothing":          {runs: map[string]int{early: 1}, link: late, want: early},
		"only a batch job":           {runs: map[string]int{"batch": 1}, want: "batch"},
		"a later batch job":          {runs: map[string]int{early: 1, "batch": 2}, link: early, want: "batch"},
		"an earlier batch job":       {runs: map[string]int{late: 2, "batch": 1}, link: late, want: late},
		"a sweep":                    {runs: map[string]int{"0000": 1, "0001": 2}, says: "it has 2, such as"},
		"nothing":                    {says: "is not the folder of a run: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for run, began := range c.runs {
				at := filepath.Join(dir, run)
				if err := os.MkdirAll(filepath.Join(at, "logs"), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(at, "run.json"), []byte("{}"), 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(filepath.Join(at, "run.json"), day(began), day(began)); err != nil {
					t.Fatal(err)
				}
			}
			if c.link != "" {
				if err := os.Symlink(c.link, filepath.Join(dir, latestLink)); err != nil {
					t.Fatal(err)
				}
			}
			switch got, err := FindRun(dir); {
			case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("found %q, error %v; want %q", got, err, c.says)
			case c.want != "" && (err != nil || got != filepath.Join(dir, c.want)):
				t.Errorf("found %q, error %v; want %s", got, err, c.want)
			}
		})
	}
}

// A run that is killed in its first moments leaves a folder that the next run recognizes.
func TestIsRunFolder(t *testing.T) {
	for files, want := range map[string]bool{
		"":                           false,
		"logs/":                      true,
		"logs/ run.lock":             true,
		"config.yaml logs/ run.lock": true,
		"logs/ run.json":             true,
		"logs/ thesis.tex":           false,
		"thesis.tex":                 false,
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(files) {
			var err error
			if strings.HasSuffix(name, "/") {
				err = os.Mkdir(filepath.Join(dir, name), 0o777)
			} else {
				err = os.WriteFile(filepath.Join(dir, name), nil, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := IsRunFolder(dir); got != want {
			t.Errorf("%q: %t, want %t", files, got, want)
		}
	}
	if IsRunFolder(filepath.Join(t.TempDir(), "none")) {
		t.Error("a missing folder is taken for a run folder")
	}
}
