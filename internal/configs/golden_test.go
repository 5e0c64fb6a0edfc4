package configs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with NAME.want beside the YAML.
func golden(t *testing.T, yamlFile string, got []byte) {
	t.Helper()
	got = unlisted(got)
	file := strings.TrimSuffix(yamlFile, ".yaml") + ".want"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/configs -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("output differs from %s\n--- got\n%s--- want\n%s", file, got, want)
	}
}

var belongsTo = regexp.MustCompile(`(?m)(\w+): belongs to (.+), not to (\w+); remove it, or take scheme: (.+)$`)

// unlisted puts words in the place of lists of schemes, where these are what the table says: a new scheme changes no golden.
func unlisted(got []byte) []byte {
	text := strings.ReplaceAll(string(got), strings.Join(scheme.All.Names(), ", "), "<all schemes>")
	return []byte(belongsTo.ReplaceAllStringFunc(text, func(line string) string {
		m := belongsTo.FindStringSubmatch(line)
		if owners := diag.OrList(keys.SchemesWith(m[1])); m[2] != owners || m[4] != owners {
			return line
		}
		return fmt.Sprintf("%s: belongs to <its schemes>, not to %s; remove it, or take scheme: <its schemes>", m[1], m[3])
	}))
}

func files(t testing.TB, pattern string, least int) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) < least {
		t.Fatalf("%d files match %s, want at least %d (%v)", len(found), pattern, least, err)
	}
	return found
}

func written(t *testing.T, ds diag.Diagnostics) string {
	t.Helper()
	var b strings.Builder
	if err := ds.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// cases runs f on every NAME.yaml with that ending in the archives of testdata, one a topic, and compares what it returns with
// the NAME.want behind it.
func cases(t *testing.T, ending string, least int, f func(t *testing.T, name string, src []byte) string) {
	seen := map[string]bool{}
	for _, file := range files(t, "testdata/*.txtar", 10) {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var with []txtar.File
		for i, in := range a.Files {
			if want := strings.TrimSuffix(in.Name, ".yaml") + ".want"; strings.HasSuffix(in.Name, ending) {
				t.Run(in.Name, func(t *testing.T) {
					if seen[in.Name] {
						t.Error("is there twice")
					}
					seen[in.Name] = true
					got := unlisted([]byte(f(t, in.Name, in.Data)))
					with = append(with, in, txtar.File{Name: want, Data: got})
					if there := i+1 < len(a.Files) && a.Files[i+1].Name == want; !*update && (!there || !bytes.Equal(got, a.Files[i+1].Data)) {
						t.Errorf("output differs from %s in %s\n--- got\n%s", want, file, got)
					}
				})
			} else if len(with) == 0 || with[len(with)-1].Name != in.Name {
				with = append(with, in)
			}
		}
		if a.Files = with; *update && !t.Failed() {
			if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) < least {
		t.Errorf("%d cases end in %s, want at least %d", len(seen), ending, least)
	}
}

// sources are all files of the archives, by name.
func sources(t testing.TB) map[string][]byte {
	t.Helper()
	src := map[string][]byte{}
	for _, file := range files(t, "testdata/*.txtar", 10) {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				src[f.Name] = f.Data
			}
		}
	}
	return src
}

// everySource are those, the other files of testdata, and the examples.
func everySource(t testing.TB) map[string][]byte {
	t.Helper()
	all := sources(t)
	for _, file := range append(files(t, "testdata/*.yaml", 1), files(t, "../../configs/examples/*.yaml", 8)...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = src
	}
	return all
}

func TestBadFiles(t *testing.T) {
	cases(t, ".bad.yaml", 100, func(t *testing.T, name string, src []byte) string {
		c, _, ds := Parse(name, src, Options{})
		if c != nil || !ds.Failed() {
			t.Errorf("was accepted: %v", ds)
		}
		sane(t, ds)
		return written(t, ds)
	})
}

func TestGoodFiles(t *testing.T) {
	cases(t, ".good.yaml", 50, func(t *testing.T, name string, src []byte) string {
		c, origins, ds := Parse(name, src, Options{})
		if c == nil || ds.Failed() {
			t.Fatalf("was refused:\n%s", written(t, ds))
		}
		roundTrip(t, c, origins, ofValues(ds))
		return written(t, ds) + differing(c, origins)
	})
}

// originCol is the column of the origins in the goldens, beyond most values.
const originCol = 48

// differing lists what a file gives, with its origin, and what is then another value than the table's default. So a new key with a
// default changes the golden of the defaults alone.
func differing(c *settings.Config, origins *diag.Origins) string {
	var lines []string
	values, defaults := keys.Values(c), tableDefaults(c)
	for path, value := range values {
		origin := origins.Of(path)
		if rule := strings.HasPrefix(path, "sync["); origin != "default" || defaults[path] != value &&
			!(rule && origins.Of("sync") == "default") {
			lines = append(lines, fmt.Sprintf("%-*s# %s\n", originCol, path+": "+value, origin))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// tableDefaults are the defaults of all keys, and of those of the schemes that c has, as Values writes them.
func tableDefaults(c *settings.Config) map[string]string {
	defaults := map[string]string{"faults": "[]"}
	add := func(t *keys.Table) {
		for _, l := range t.Leaves {
			switch l.Ptr.(type) {
			case *[]settings.Rule, *[]settings.Fault:
			default:
				defaults[l.Path] = keys.Format(l.Ptr)
			}
		}
	}
	top := settings.Defaults()
	add(keys.Bind("", keys.TopKeys, &top))
	for i := range c.Faults {
		add(keys.Bind(fmt.Sprintf("faults[%d]", i), keys.FaultKeys, &settings.Fault{}))
	}
	for i, r := range c.Sync {
		path, rule, phases := fmt.Sprintf("sync[%d]", i), settings.NewRule(), r.Phases()
		add(keys.Bind(path, keys.RuleKeys, &rule))
		for k, ph := range phases {
			if len(phases) > 1 {
				path = fmt.Sprintf("sync[%d].schemes[%d]", i, k)
			}
			phase := settings.Phase{}
			t := keys.Bind(path, keys.PhaseKeys, &phase)
			e, _ := keys.BindScheme(t, &phase.Params, ph.Scheme)
			phase.Common.Fold = e.Fold
			add(t)
		}
	}
	return defaults
}

// TestDefaults is every key, and its default.
func TestDefaults(t *testing.T) {
	var text strings.Builder
	for _, k := range keys.All() {
		switch {
		case k.Default != "":
			fmt.Fprintf(&text, "%s: %s\n", k.Path, k.Default)
		case k.Required:
			fmt.Fprintf(&text, "%s  # must be set\n", k.Path)
		default:
			fmt.Fprintf(&text, "%s  # may be set\n", k.Path)
		}
	}
	golden(t, "testdata/defaults.yaml", []byte(text.String()))
}

func TestExamples(t *testing.T) {
	for _, file := range files(t, "../../configs/examples/*.yaml", 8) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, origins, ds := Load(file, Options{})
			if len(ds) > 0 {
				t.Fatalf("has problems:\n%s", written(t, ds))
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(src), modeline+"# ") || !strings.Contains(string(src), strings.TrimPrefix(file, "../../")) {
				t.Errorf("does not open with the modeline of editors and a comment that shows its command line with %s", file)
			}
			if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); c.Name != want {
				t.Errorf("name is %s, want %s as the file", c.Name, want)
			}
			roundTrip(t, c, origins, 0)
		})
	}
}

// ofValues counts the warnings of values; those of how a number is written are gone in the resolved form, and so are notes, and
// those that ask for a default to be written down.
func ofValues(ds diag.Diagnostics) (n int) {
	for _, d := range ds.Warnings() {
		if !strings.HasPrefix(d.Msg, "YAML reads ") && !strings.Contains(d.Hint, "and write weight: 1, or write") {
			n++
		}
	}
	return n
}

// roundTrip demands that the resolved form, with and without origins, loads to an equal Config with the same
// hash and as many warnings as the original had, and that the schema takes it.
func roundTrip(t *testing.T, c *settings.Config, origins *diag.Origins, warnings int) {
	t.Helper()
	for _, o := range []*diag.Origins{origins, nil} {
		var out bytes.Buffer
		if err := keys.Resolved(&out, c, o); err != nil {
			t.Fatal(err)
		}
		again, _, ds := Parse("resolved.yaml", out.Bytes(), Options{})
		if again == nil || len(ds) != warnings {
			t.Fatalf("resolved form is refused:\n%s\n%s", written(t, ds), out.String())
		}
		if !reflect.DeepEqual(c, again) {
			t.Errorf("resolved form loads to\n%+v, want\n%+v", again, c)
		}
		if err := fits(out.Bytes()); err != nil {
			t.Errorf("the schema refuses the resolved form: %v\n%s", err, out.String())
		}
		if keys.Hash(c) != keys.Hash(again) {
			t.Errorf("hash of the resolved form is %s, want %s", keys.Hash(again), keys.Hash(c))
		}
	}
}

// sane demands what every diagnostic promises.
func sane(t *testing.T, ds diag.Diagnostics) {
	t.Helper()
	for _, d := range ds {
		if d.Line < 1 || d.Col < 1 || d.Msg == "" || d.Hint == "" || d.File == "" {
			t.Errorf("diagnostic without place, message or hint: %+v", d)
		}
		if strings.ContainsAny(d.Msg+d.Hint+d.Path, "\n") {
			t.Errorf("diagnostic of more than one line: %+v", d)
		}
	}
}
