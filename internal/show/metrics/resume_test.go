package metrics

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
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
	s, err := At(dir).OpenSinks(names, subject(1))
	if err != nil {
		t.Fatal(err)
	}
	rec(s, 1)
	rec(s, 2)
	sizes := At(dir).SinkSizes(names)
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
		s, err := At(dir).ResumeSinks(names, c.sizes, subject(1))
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
	if s, err := At(t.TempDir()).ResumeSinks(names, sizes, subject(1)); err != nil || s.Close() != nil {
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
		s, err := At(dir).ResumeSinks([]string{name}, map[string]int64{name: 1 << 40}, subject(1))
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
	if _, err := At(dir).ResumeSinks([]string{"csv"}, map[string]int64{"csv": headMax + 1}, subject(1)); err == nil ||
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
	s, err := At(dir).ResumeSinks([]string{"csv"}, map[string]int64{"csv": int64(len(before))}, subject(2))
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

func TestIterationsBeforeTheCheckpointAreKept(t *testing.T) {
	dir := t.TempDir()
	if rows, lacks, err := At(dir).KeptIterations([]int64{1, 3}); err != nil || rows != nil || lacks != 4 {
		t.Fatalf("%q, lacks %d, %v without a file", rows, lacks, err)
	}
	text := string(IterationsHeader()) + "0,0,0,1,0,0,0,0,4\n0,1,1,1,0,0,0,0,4\n1,0,0,1,0,0,0,0,4\n1,5,1,1,0,0,0,0,4\n2,0,0,1,0,0,0,0,4\n"
	if err := os.WriteFile(filepath.Join(dir, IterationsName), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	rows, lacks, err := At(dir).KeptIterations([]int64{1, 6})
	if want := "0,0,0,1,0,0,0,0,4\n1,0,0,1,0,0,0,0,4\n1,5,1,1,0,0,0,0,4\n"; err != nil || string(rows) != want || lacks != 4 {
		t.Errorf("%q, lacks %d, want 4: %v", rows, lacks, err)
	}
	earlier := strings.ReplaceAll(strings.Replace(text, ",samples\n", "\n", 1), ",4\n", "\n")
	path := filepath.Join(dir, IterationsName)
	if err := os.WriteFile(path, []byte(earlier), 0o666); err != nil {
		t.Fatal(err)
	}
	rows, lacks, err = At(dir).KeptIterations([]int64{1, 6})
	if want := "0,0,0,1,0,0,0,0,0\n1,0,0,1,0,0,0,0,0\n1,5,1,1,0,0,0,0,0\n"; err != nil || string(rows) != want || lacks != 4 {
		t.Errorf("of an earlier version: %q, lacks %d, want 4: %v", rows, lacks, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, lacks, err := At(dir).KeptIterations([]int64{1, 6}); err == nil || !strings.Contains(err.Error(), "or remove it") || lacks != 7 {
		t.Errorf("of a FIFO: lacks %d, want 7: %v", lacks, err)
	}
}

func TestEpochLossIsSavedWhole(t *testing.T) {
	a := EpochLoss{Rows: 10}
	for range 3 {
		a.Add(2, 6)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	b := EpochLoss{Rows: 10}
	if err := json.Unmarshal(text, &b); err != nil || a != b {
		t.Fatalf("%+v was read back as %+v: %v", a, b, err)
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

// A line that a kill has torn is not joined to the next one.
func TestLinesAreAppendedToWholeOnes(t *testing.T) {
	for was, want := range map[string]string{"": "1,0,b\n", "1,0,a\n": "1,0,a\n1,0,b\n", "1,0,a\n2": "1,0,a\n1,0,b\n", "12": "1,0,b\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		if was != "" {
			if err := os.WriteFile(path, []byte(was), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		file, err := At(dir).AppendLines("x")
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString("1,0,b\n")
		if got, _ := os.ReadFile(path); errors.Join(err, file.Close()) != nil || string(got) != want {
			t.Errorf("after %q: %q, %v, want %q", was, got, err, want)
		}
	}
}
