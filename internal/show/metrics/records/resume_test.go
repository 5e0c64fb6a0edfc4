package records

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
)

func TestSinksAreCutOffAndAppendedTo(t *testing.T) {
	dir := t.TempDir()
	rec := func(s Sink, n int64) {
		t.Helper()
		if err := s.Record(Record{At: time.Duration(n) * time.Second, Iteration: n, Samples: 8 * n}); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"jsonl", "csv"}
	s, err := Open(durable.Below(dir), names, subject(1))
	if err != nil {
		t.Fatal(err)
	}
	rec(s, 1)
	rec(s, 2)
	sizes := Sizes(durable.Below(dir), names)
	rec(s, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines := func(name string) []string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "metrics."+name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	for _, c := range []struct {
		sizes map[string]int64
		want  int // records, with the one that is added
	}{{sizes, 3}, {map[string]int64{"jsonl": sizes["jsonl"] - 1, "csv": sizes["csv"] - 1}, 2}, {nil, 1}} {
		s, err := Resume(durable.Below(dir), names, c.sizes, subject(1))
		if err != nil {
			t.Fatal(err)
		}
		rec(s, 9)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		j, v := lines("jsonl"), lines("csv")
		if len(j) != c.want || len(v) != c.want+1 || !strings.HasPrefix(v[0], "time_s,") && !strings.Contains(v[0], ",") ||
			!strings.HasPrefix(v[len(v)-1], "9,9,") {
			t.Errorf("after a cut at %v: %q and %q", c.sizes, j, v)
		}
	}
	if s, err := Resume(durable.Below(t.TempDir()), names, sizes, subject(1)); err != nil || s.Close() != nil {
		t.Errorf("without files: %v", err)
	}
}

// Neither a huge metrics file nor a manifest with a still larger size fills the memory.
func TestHugeSinksAreCutOffInLittleMemory(t *testing.T) {
	const huge, most = 64 << 20, 4 << 20
	for name, head := range map[string]string{"jsonl": "{}\n", "csv": "a,b\n1,2\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "metrics."+name)
		if err := errors.Join(os.WriteFile(path, []byte(head), 0o666), os.Truncate(path, huge)); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Resume(durable.Below(dir), []string{name}, map[string]int64{name: 1 << 40}, subject(1))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d bytes of memory, must take at most %d", name, took, most)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != head {
			t.Errorf("%s was left with %.40q of %d bytes, %v; want %q", name, text, len(text), err, head)
		}
	}
}

// A table without a header is refused, because no run has written it.
func TestATableWithoutAHeaderIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "metrics.csv"), []byte(strings.Repeat("a", headMax)+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(durable.Below(dir), []string{"csv"}, map[string]int64{"csv": headMax + 1}, subject(1)); err == nil ||
		!strings.Contains(err.Error(), "metrics.csv: line 1 has more than 1048576 bytes") {
		t.Errorf("error %v", err)
	}
}

// A run that resumes with other rules, or under another version of the program, writes to the existing columns.
func TestATableKeepsItsColumns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.csv")
	const before = "at_s,iteration,gone,sync/staleness_max,sync[0]/staleness_max\n1,2,3,4,5\n"
	if err := os.WriteFile(path, []byte(before), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Resume(durable.Below(dir), []string{"csv"}, map[string]int64{"csv": int64(len(before))}, subject(2))
	if err != nil {
		t.Fatal(err)
	}
	r := Record{At: time.Second, Iteration: 7, Rules: []Staleness{{Pushes: 1, Max: 6}, {Pushes: 1, Max: 9}}}
	r.Set(StalenessMax, 9)
	if err := errors.Join(s.Record(r), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != before+"1,7,,9,6\n" {
		t.Errorf("%v, got\n%s", err, got)
	}
}
