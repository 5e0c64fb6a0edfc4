package timings

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
)

// Recorded iterations are read back to the nanosecond, for several workers with several chunks each.
func TestIterationsAreReadBackAsRecorded(t *testing.T) {
	dir, draw := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	f, err := Create(durable.Below(dir))
	if err != nil {
		t.Fatal(err)
	}
	some := func() time.Duration { return time.Duration(draw.Int64N(1e13)) }
	var want [][]Iteration
	for w, n := range []int{1, 7, recorderBlock, recorderBlock + 1} {
		r, of := Recorder{Max: n}, make([]Iteration, n)
		for i := range of {
			of[i] = Iteration{Iter: int64(i), Start: some(), Compute: some(), Injected: some(), Push: some(), Blocked: some(),
				Pull: some(), Samples: int(some() % samplesMax)}
			known := of[i]
			known.Blocked, known.Pull = 0, 0
			r.Add(known)
			r.Waited(of[i].Blocked, of[i].Pull)
		}
		if r.Len() != n || r.Chunks() != ChunksOf(n) {
			t.Fatalf("%d iterations in %d texts, want %d in %d", r.Len(), r.Chunks(), n, ChunksOf(n))
		}
		for k := range r.Chunks() {
			if err := f.Append(r.Chunk(w, k)); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, of)
	}
	if err := f.Close(true); err != nil {
		t.Fatal(err)
	}
	got, err := Read(filepath.Join(dir, FileName))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v: got other iterations than were recorded", err)
	}
}

func TestRecorderKeepsTheFirstIterations(t *testing.T) {
	r := Recorder{Max: 2}
	r.Waited(time.Hour, time.Hour) // a wait before the first iteration is not recorded
	for i := range 4 {
		r.Add(Iteration{Iter: int64(i), Samples: 7})
		r.Waited(time.Duration(i+1), 0)
	}
	text := string(r.Chunk(5, 0))
	want := "5,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000000001,0.000000000,7\n" +
		"5,1,0.000000000,0.000000000,0.000000000,0.000000000,0.000000002,0.000000000,7\n"
	if text != want || r.LeftOut != 2 || r.Len() != 2 {
		t.Errorf("%d kept, %d left out:\n%swant\n%s", r.Len(), r.LeftOut, text, want)
	}
	if none := (&Recorder{}); none.Chunks() != 0 {
		t.Error("a recorder without room has a text")
	}
}

func TestAnIterationTakesTheMemoryThatPlanCounts(t *testing.T) {
	if size := reflect.TypeFor[Iteration]().Size(); size != IterationBytes {
		t.Errorf("an Iteration takes %d bytes, IterationBytes is %d", size, IterationBytes)
	}
}

// Earlier versions wrote no samples.
func TestIterationsOfAnEarlierVersion(t *testing.T) {
	all, err := Parse(strings.NewReader("worker,iter,start_s,compute_s,injected_s,push_s,blocked_s,pull_s\n0,3,1,2,0,0,0,0\n"))
	if want := (Iteration{Iter: 3, Start: time.Second, Compute: 2 * time.Second}); err != nil || len(all) != 1 ||
		!slices.Equal(all[0], []Iteration{want}) {
		t.Errorf("%+v, %v", all, err)
	}
}

// A file under the name FileName is whole.
func TestIterationsFileIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(durable.Below(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, FileName)); !os.IsNotExist(err) {
		t.Errorf("while it is written: %v", err)
	}
	if err := f.Close(false); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("after a failure: %v, %v", left, err)
	}
}

func TestIterationsThatNoRunWroteAreRefused(t *testing.T) {
	head := strings.Join(columnNames, ",") + "\n"
	before := strings.TrimSuffix(head, ",samples\n") + "\n" // of an earlier version
	for _, c := range []struct{ text, want string }{
		{"", "line 1 is not the header of iterations: worker,iter,"},
		{"at_s,iteration\n", "line 1 is not the header"},
		{head, "it has a header but no iterations"},
		{head + "0,0,1,1,1\n", "line 2: 5 columns, must be 9"},
		{head + "0,0,0,0,0,0,0,0,1\n-1,0,0,0,0,0,0,0,1\n", `line 3: worker is "-1"`},
		{head + "99999999,0,0,0,0,0,0,0,1\n", `line 2: worker is "99999999"`},
		{head + "0,x,0,0,0,0,0,0,1\n", `line 2: iter is "x"`},
		{head + "0,0,0,-1,0,0,0,0,1\n", `line 2: compute_s is "-1", must be seconds from 0`},
		{head + "0,0,0,0,0,0,NaN,0,1\n", `line 2: blocked_s is "NaN"`},
		{head + "0,0,0,0,0,0,0,1e30,1\n", `line 2: pull_s is "1e30"`},
		{head + "0,0,0,0,0,0,0,0,-1\n", `line 2: samples is "-1", must be a number from 0 to 1000000000`},
		{head + "0,0,0,0,0,0,0,0,1000000001\n", `line 2: samples is "1000000001"`},
		{before + "0,0,0,0,0,0,0,0\n0,0,0,0,0,0,0,0,1\n", "line 3: 9 columns, must be 8"},
		{head + "1,0,0,0,0,0,0,0,1\n", "no iterations of worker 0, but some of worker 1"},
		{head + strings.Repeat("0,0,0,0,0,0,0,0,1\n", RowsMax+1), "more than 1000000 rows"},
	} {
		_, err := parseAll(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestOwnTimeIsWithoutTheInjectedSlowness(t *testing.T) {
	it := Iteration{Start: 100, Compute: 50, Injected: 40, Push: 5}
	if it.Own() != 15 || it.End() != 155 {
		t.Errorf("own %d, end %d; want 15, 155", it.Own(), it.End())
	}
	it.Injected = 60
	if it.Own() != 0 {
		t.Errorf("own %d, want 0: no time is negative", it.Own())
	}
}

func TestIterationsBeforeTheCheckpointAreKept(t *testing.T) {
	dir := t.TempDir()
	if rows, lacks, err := Kept(durable.Below(dir), []int64{1, 3}); err != nil || rows != nil || lacks != 4 {
		t.Fatalf("%q, lacks %d, %v without a file", rows, lacks, err)
	}
	text := string(Header()) + "0,0,0,1,0,0,0,0,4\n0,1,1,1,0,0,0,0,4\n1,0,0,1,0,0,0,0,4\n1,5,1,1,0,0,0,0,4\n2,0,0,1,0,0,0,0,4\n"
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	rows, lacks, err := Kept(durable.Below(dir), []int64{1, 6})
	if want := "0,0,0,1,0,0,0,0,4\n1,0,0,1,0,0,0,0,4\n1,5,1,1,0,0,0,0,4\n"; err != nil || string(rows) != want || lacks != 4 {
		t.Errorf("%q, lacks %d, want 4: %v", rows, lacks, err)
	}
	earlier := strings.ReplaceAll(strings.Replace(text, ",samples\n", "\n", 1), ",4\n", "\n")
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, []byte(earlier), 0o666); err != nil {
		t.Fatal(err)
	}
	rows, lacks, err = Kept(durable.Below(dir), []int64{1, 6})
	if want := "0,0,0,1,0,0,0,0,0\n1,0,0,1,0,0,0,0,0\n1,5,1,1,0,0,0,0,0\n"; err != nil || string(rows) != want || lacks != 4 {
		t.Errorf("of an earlier version: %q, lacks %d, want 4: %v", rows, lacks, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, lacks, err := Kept(durable.Below(dir), []int64{1, 6}); err == nil || !strings.Contains(err.Error(), "or remove it") || lacks != 7 {
		t.Errorf("of a FIFO: lacks %d, want 7: %v", lacks, err)
	}
}
