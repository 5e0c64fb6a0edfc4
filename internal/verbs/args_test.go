package verbs

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReorder(t *testing.T) {
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	for _, c := range []struct{ typed, want string }{
		{"run a.yaml --local 6 --set a=b", "run --local 6 --set a=b -- a.yaml"},
		{"run --local 6 --set a=b a.yaml", "run --local 6 --set a=b -- a.yaml"},
		{"run --local=6 a.yaml --require", "run --local=6 --require -- a.yaml"},
		{"run -local 6 a.yaml -require", "run -local 6 -require -- a.yaml"},
		{"check a.yaml --strict b.yaml", "check --strict -- a.yaml b.yaml"},
		{"check a.yaml --set -x", "check --set -x -- a.yaml"},
		{"check --strict -- --odd.yaml --resolved", "check --strict -- --odd.yaml --resolved"},
		{"check - --strict", "check --strict -- -"},
		{"run a.yaml --lokal 3", "run --lokal -- a.yaml 3"}, // the flag package reports the unknown flag
		{"run a.yaml --local", "run --local"},               // the flag package reports the missing value
		{"run a.yaml -h --local", "run -h"},
		{"run a.yaml --lo " + completing, "run a.yaml --lo " + completing},
		{"-h --help " + completing, completing},
		{"bench pushpull --local 2", "bench pushpull --local 2"},
		{"bench pushpull x --local 2 --format json", "bench pushpull --local 2 --format json -- x"},
		{"bench comm --local 2 -h", "bench comm -h"},
		{"bench --local 2 comm", "bench --local 2 comm"},
		{"explain", "explain"},
		{"unknown a --b c", "unknown a --b c"},
		{"--version", "--version"},
		{"", ""},
	} {
		args := append([]string{"fluentps"}, strings.Fields(c.typed)...)
		if got := strings.Join(reorder(app.Commands, args)[1:], " "); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.typed, got, c.want)
		}
	}
}

// The position of a flag on the command line makes no difference.
func TestFlagsMayStandAnywhere(t *testing.T) {
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	files := []string{"a.yaml", "b.yaml", "c.yaml"}
	flags := [][]string{{"--set", "a=b"}, {"--strict"}, {"--format=json"}, {"--set", "c=[1, 2]"}, {"--resolved"}}
	rapid.Check(t, func(t *rapid.T) {
		typed := []string{"fluentps", "check"}
		f, g := 0, 0
		for f < len(files) || g < len(flags) {
			if g == len(flags) || f < len(files) && rapid.Bool().Draw(t, "file") {
				typed = append(typed, files[f])
				f++
				continue
			}
			typed = append(typed, flags[g]...)
			g++
		}
		want := append([]string{"fluentps", "check", "--set", "a=b", "--strict", "--format=json", "--set", "c=[1, 2]",
			"--resolved", "--"}, files...)
		if got := reorder(app.Commands, typed); !slices.Equal(got, want) {
			t.Fatalf("%q becomes %q", typed, got)
		}
	})
}

// Every command line ends with a documented exit code. Unless the code is 0, there is a text on stderr or in the report.
func TestNoArgumentsPanic(t *testing.T) {
	word := rapid.SampledFrom([]string{"check", "plan", "explain", "info", "data", "run", "bench", "help", "h", "-h",
		"--help", "-v", "--version", "--", "-", "", "=", "--=",
		"--set", "--set=", "--set=seed=1", "a=b", "[", "--ranks", "3", "-1", "99999999999999999999", "--hosts", "x:2,y",
		":", "--strict", "--format", "json", "--resolved",
		"--test", "csv", "idx", "generated", "ssp", "fifo", "none.yaml", ".", "--local", "--nope", "-\x00", "ü", completing})
	rapid.Check(t, func(t *rapid.T) {
		args := append([]string{"fluentps"}, rapid.SliceOfN(word, 0, 6).Draw(t, "args")...)
		var out, errOut bytes.Buffer
		app := newApp(&out, &errOut)
		code := report(&errOut, app.Run(reorder(app.Commands, args)))
		if code < 0 || code > 2 {
			t.Fatalf("%q: exit code %d", args, code)
		}
		if code != 0 && errOut.Len()+out.Len() == 0 {
			t.Fatalf("%q: exit code %d without any text", args, code)
		}
	})
}
