package mutations

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// triedHere is the default number of changes; `make accept` tries 20000.
	triedHere = 600
	// secondsHere is the time limit of a reader, including a run of a few iterations, on a busy machine; `make accept` allows 10.
	secondsHere = 300
	// rssMax is the most memory of the process: data and buffers of memoryMax, their garbage that has not been collected yet, the
	// program, and its other tests.
	rssMax = 512 << 20
)

func setting(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, must be a number", name, text)
	}
	return n
}

// slowest is the longest time of a reader so far.
var slowest time.Duration

// outcome counts the outcomes of the changes of one kind.
type outcome struct{ refused, same, noted, silent int }

// No change of an input makes the program panic, hang, exceed its memory limit or write elsewhere. Changed inputs that it accepts
// with another content and without a note are counted.
func TestMutations(t *testing.T) {
	readers := slices.Concat(dataReaders(t), textReaders(), paramsReaders(t), checkpointReaders(t))
	if of := os.Getenv("FLUENTPS_MUTATIONS_OF"); of != "" {
		readers = slices.DeleteFunc(readers, func(r *reader) bool { return !strings.HasPrefix(r.name, of) })
	}
	outer := t.TempDir()
	var shares int
	for _, r := range readers {
		shares += r.share
	}
	total, seed := setting(t, "FLUENTPS_MUTATIONS", triedHere), uint64(setting(t, "FLUENTPS_MUTATIONS_SEED", 1))
	// The test runs in a folder of its own, so that it also finds files that are written to a relative path.
	t.Chdir(filepath.Join(outer, mkdir(t, outer, "here")))
	var table []string
	tried := 0
	for _, r := range readers {
		counts := map[string]*outcome{}
		good, usual := mustRead(t, r, outer)
		n := max(1, total*r.share/shares)
		if r == readers[len(readers)-1] {
			n = max(1, total-tried)
		}
		for i := range n {
			one(t, r, outer, good, usual, seed, i, counts)
		}
		tried += n
		table = append(table, rows(r, counts)...)
	}
	for _, row := range table {
		t.Log(row)
	}
	if rss := peak(t); rss > rssMax {
		t.Errorf("the process took %d bytes, and may take %d", rss, rssMax)
	}
	t.Logf("tried: %d changes of %d readers, seed %d; at most %d MiB and %.1f s", tried, len(readers), seed, peak(t)>>20, slowest.Seconds())
}

func mkdir(t testing.TB, dir, name string) string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
		t.Fatal(err)
	}
	return name
}

// mustRead reads the unchanged input. It returns its sum and the output of the reader.
func mustRead(t *testing.T, r *reader, outer string) (sum, said string) {
	t.Helper()
	dir := filepath.Join(outer, "work")
	write(t, dir, r.files)
	defer os.RemoveAll(dir)
	sum, said, err := r.read(dir)
	if err != nil {
		t.Fatalf("%s, unchanged: %v", r.name, err)
	}
	if said != "" {
		t.Logf("%s, unchanged, has a note: %s", r.name, said)
	}
	return sum, said
}

// one tries a change.
func one(t *testing.T, r *reader, outer, good, usual string, seed uint64, i int, counts map[string]*outcome) {
	t.Helper()
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", r.name, i)
	draw := rand.New(rand.NewPCG(seed, h.Sum64()))
	files := maps.Clone(r.files)
	kind := changed(r, draw, files)
	dir := filepath.Join(outer, "work")
	write(t, dir, files)
	defer os.RemoveAll(dir)
	what := fmt.Sprintf("%s, change %d (%s) of seed %d", r.name, i, kind, seed)
	limit := time.Duration(setting(t, "FLUENTPS_MUTATIONS_SECONDS", secondsHere)) * time.Second
	late := time.AfterFunc(limit, func() {
		debug.SetTraceback("all")
		panic(what + " takes longer than " + limit.String())
	})
	began := time.Now()
	got, said, err := r.readSafely(dir)
	late.Stop()
	slowest = max(slowest, time.Since(began))
	if err != nil && regexp.MustCompile(`\bbug\b|panic`).MatchString(err.Error()+said) {
		t.Errorf("%s: %.2000v", what, err)
	}
	if err != nil && len(err.Error()) > 64<<10 {
		t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
	}
	if left := beside(t, outer); len(left) > 0 {
		t.Fatalf("%s wrote %v", what, left)
	}
	c := counts[kind]
	if c == nil {
		c = new(outcome)
		counts[kind] = c
	}
	switch {
	case err != nil:
		c.refused++
	case got == good || r.varies:
		c.same++
	case said != usual:
		c.noted++
	default:
		c.silent++
		if os.Getenv("FLUENTPS_MUTATIONS_SHOW") != "" {
			t.Logf("silent: %s", what)
		}
	}
}

// readSafely turns a panic into an error that contains the word bug.
func (r *reader) readSafely(dir string) (got, said string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bug: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.read(dir)
}

// changed changes one of the files.
func changed(r *reader, draw *rand.Rand, files map[string][]byte) string {
	if r.change != nil {
		return r.change(draw, files)
	}
	names := slices.Sorted(maps.Keys(files))
	name := names[draw.IntN(len(names))]
	c := changes[draw.IntN(len(changes))]
	kind, data := packed(draw, c, files[name])
	files[name] = data
	return kind
}

// beside lists the files outside the folder of the reader.
func beside(t *testing.T, outer string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(outer, func(path string, e fs.DirEntry, err error) error {
		switch rel := strings.TrimPrefix(path, outer); {
		case err != nil:
			return err
		case rel == "/work":
			return filepath.SkipDir
		case rel != "" && rel != "/here":
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rows are the lines of a table with the outcomes of each kind of change.
func rows(r *reader, counts map[string]*outcome) (list []string) {
	var all outcome
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		c := counts[kind]
		all.refused, all.same, all.noted, all.silent = all.refused+c.refused, all.same+c.same, all.noted+c.noted, all.silent+c.silent
		if c.silent > 0 {
			list = append(list, fmt.Sprintf("accepted: %4d of %4d  %s: %s", c.silent, c.refused+c.same+c.noted+c.silent, r.name, kind))
		}
	}
	if r.varies {
		return append(list, fmt.Sprintf("reader: %s: %d refused, %d read; what comes of them depends on times", r.name, all.refused, all.same))
	}
	return append(list, fmt.Sprintf("reader: %s: %d refused, %d read as before, %d as something else with a note, %d "+
		"without", r.name, all.refused, all.same, all.noted, all.silent))
}

// peak is the largest resident memory of this process so far, in bytes.
func peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc: the memory of this process is not known")
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
