package verbs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// root is the folder of go.mod, above this package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above this package: %v", err)
	return ""
}

// TestReadmeHasEveryVerb holds the table of verbs in the README at the root to the verbs that there are.
func TestReadmeHasEveryVerb(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n| verb | what it does |\n|---|---|\n")
	if !ok {
		t.Fatal("README.md has no table | verb | what it does |")
	}
	rows, _, _ := strings.Cut(rest, "\n\n")
	var got []string
	for row := range strings.Lines(rows) { // a row may be of several verbs
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range regexp.MustCompile("`([a-z-]+)[ `]").FindAllStringSubmatch(cell, -1) {
			got = append(got, m[1])
		}
	}
	var want []string
	for _, c := range newApp(io.Discard, io.Discard).Commands {
		want = append(want, c.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("README.md has rows for the verbs\n%v\nthere are\n%v", got, want)
	}
}

var (
	code = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	// call is the program with a verb and what follows on the line.
	call = regexp.MustCompile(`(?:^|[\s/"])fluentps(?:-pure|-mpich)? +([a-z]+(?:-[a-z]+)*)\b(.*)`)
	flag = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
)

// TestPagesCallWhatThereIs runs through all calls of the program in the pages: each verb is known, and so is each of its flags.
func TestPagesCallWhatThereIs(t *testing.T) {
	commands := newApp(io.Discard, io.Discard).Commands
	find := func(among []*cli.Command, name string) *cli.Command {
		if k := slices.IndexFunc(among, func(c *cli.Command) bool { return c.Name == name }); k >= 0 {
			return among[k]
		}
		return nil
	}
	calls := 0
	err := filepath.WalkDir(root(t), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" || strings.Contains(name, "/testdata/") {
			return err
		}
		text, err := os.ReadFile(name)
		joined := strings.ReplaceAll(string(text), "\\\n", " ")
		for _, block := range code.FindAllString(joined, -1) {
			for _, line := range strings.FieldsFunc(strings.Trim(block, "`"), func(r rune) bool { return r == '\n' || r == '&' }) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				m := call.FindStringSubmatch(line)
				if m == nil || strings.HasPrefix(line, "import ") { // of the Python package
					continue
				}
				calls++
				verb := find(commands, m[1])
				if verb == nil {
					t.Errorf("%s: there is no verb %s: %s", name, m[1], line)
					continue
				}
				words, _, _ := strings.Cut(m[2], " -- ")
				if len(verb.Subcommands) > 0 && strings.TrimSpace(words) != "" {
					below := find(verb.Subcommands, strings.Fields(words)[0])
					if below == nil && len(verb.Flags) > 0 { // it also does something by itself
						below = verb
					}
					if verb = below; verb == nil {
						t.Errorf("%s: there is no such %s: %s", name, m[1], line)
						continue
					}
				}
				for _, f := range flag.FindAllStringSubmatch(words, -1) {
					if !slices.ContainsFunc(verb.Flags, func(known cli.Flag) bool { return slices.Contains(known.Names(), f[1]) }) {
						t.Errorf("%s: %s has no flag --%s: %s", name, verb.Name, f[1], line)
					}
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 20 {
		t.Errorf("the pages have %d calls of the program; this test does not read them", calls)
	}
}
