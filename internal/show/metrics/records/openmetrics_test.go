package records

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fluentps/internal/disk/durable"

	"pgregory.net/rapid"
)

// readOpenMetrics is a strict reader of the subset of OpenMetrics 1.0 that has no timestamps. It returns the samples by name and labels.
func readOpenMetrics(text string) (map[string]float64, error) {
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		return nil, fmt.Errorf("the text does not end with # EOF and a line break")
	}
	samples, types := map[string]float64{}, map[string]string{}
	family := ""
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$`)
	meta := regexp.MustCompile(`^# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if m := meta.FindStringSubmatch(line); m != nil {
			switch {
			case m[1] == "TYPE" && types[m[2]] != "":
				return nil, fmt.Errorf("a second family %s", m[2])
			case m[1] == "TYPE" && m[3] != "gauge" && m[3] != "counter":
				return nil, fmt.Errorf("type %s", m[3])
			case m[1] == "TYPE":
				family, types[m[2]] = m[2], m[3]
			case m[2] != family:
				return nil, fmt.Errorf("%s outside its family", line)
			case m[1] == "UNIT" && !strings.HasSuffix(family, "_"+m[3]):
				return nil, fmt.Errorf("%s does not end with its unit %s", family, m[3])
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %q", line)
		}
		want := family
		if types[family] == "counter" {
			want += "_total"
		}
		if m[1] != want {
			return nil, fmt.Errorf("%s in the family %s", m[1], family)
		}
		v, err := strconv.ParseFloat(m[4], 64)
		if _, twice := samples[m[1]+m[2]]; err != nil || twice {
			return nil, fmt.Errorf("line %q: %v", line, err)
		}
		samples[m[1]+m[2]] = v
	}
	return samples, nil
}

func TestOpenMetricsGolden(t *testing.T) {
	of := subject(2)
	of.Rules[1].Match = "fc2 \"hot\"\n\\x\x1b[31m\xff"
	var w writes
	s := OpenMetrics(func(text []byte) error { _, err := w.Write(text); return err }, of)
	for _, r := range records() {
		if err := s.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "metrics.prom", w[1])
	for i, text := range w {
		if _, err := readOpenMetrics(text); err != nil {
			t.Errorf("after record %d: %v", i, err)
		}
	}
	if !strings.Contains(w[2], `fluentps_samples_total{run="a"} 0`) {
		t.Errorf("the third record has later samples:\n%s", w[2])
	}
}

// The names of families are checked against the columns: a new column needs a family.
func TestEveryColumnHasAFamily(t *testing.T) {
	seen := map[string]bool{}
	for i, f := range families {
		if f.name == "" || f.help == "" || seen[f.name] {
			t.Errorf("column %d: family %+v", i, f)
		}
		seen[f.name] = true
	}
}

// Values come back, and no name of a run or rule adds a line or a metric.
func TestOpenMetricsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := Subject{Run: rapid.String().Draw(t, "run")}
		r := Record{Iteration: rapid.Int64Range(0, 1<<50).Draw(t, "iteration")}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			of.Rules = append(of.Rules, Rule{Match: rapid.String().Draw(t, "match"), Scheme: string(rapid.SliceOf(rapid.Byte()).Draw(t, "scheme"))})
			r.Rules = append(r.Rules, Staleness{Pushes: 1, P50: 1, P99: 2, Max: 3})
		}
		set := fixedCells
		for c := range columnCount {
			if rapid.Bool().Draw(t, "set "+c.String()) {
				r.Set(c, rapid.Float64().Draw(t, c.String()))
				set++
			}
		}
		if rapid.Bool().Draw(t, "NaN") {
			if _, ok := r.Get(TrainLoss); !ok {
				set++
			}
			r.Set(TrainLoss, math.NaN())
		}
		var text string
		if err := OpenMetrics(func(b []byte) error { text = string(b); return nil }, of).Record(r); err != nil {
			t.Fatal(err)
		}
		samples, err := readOpenMetrics(text)
		if err != nil || len(samples) != set+len(of.Rules)*len(ruleColumns) {
			t.Fatalf("%d samples, %v:\n%s", len(samples), err, text)
		}
		if got := samples["fluentps_iterations_total{run="+labelValue(of.Run)+"}"]; got != float64(r.Iteration) {
			t.Fatalf("%v iterations, want %d", got, r.Iteration)
		}
	})
}

// A reader finds the file whole, and a link in its place is replaced, not followed.
func TestOpenMetricsFileIsReplaced(t *testing.T) {
	dir, treasure := t.TempDir(), filepath.Join(t.TempDir(), "treasure")
	path := filepath.Join(dir, OpenMetricsName)
	if err := os.WriteFile(treasure, []byte("treasure"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(treasure, path); err != nil {
		t.Fatal(err)
	}
	s, err := Open(durable.Below(dir), []string{sinkOpenMetrics}, subject(1))
	for _, r := range records() {
		if err == nil {
			err = s.Record(r)
		}
		text, readErr := os.ReadFile(path)
		if readErr != nil || err != nil {
			t.Fatal(readErr, err)
		}
		if _, err := readOpenMetrics(string(text)); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(treasure); err != nil || string(text) != "treasure" {
		t.Errorf("the file outside has %q, %v", text, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("the folder has %v, %v", all, err)
	}
}
