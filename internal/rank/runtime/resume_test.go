package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// runPart runs a part of a run of n ranks in a folder: the first one, or with resume a later one.
func runPart(t testing.TB, c *configs.Config, n int, dir, resume string, change func(*Options)) ([]Result, []error) {
	t.Helper()
	return world(t, c, n, func(o *Options) {
		o.Resume = resume
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
		if change != nil {
			change(o)
		}
	})
}

// mustRunPart is runPart that must end well. It returns rank 0's result.
func mustRunPart(t testing.TB, c *configs.Config, n int, dir, resume string) Result {
	t.Helper()
	res, errs := runPart(t, c, n, dir, resume, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if res[0].Code != CodeOK || res[0].Summary.Finished != metrics.FinishedOK {
		t.Fatalf("code %d, finished %q", res[0].Code, res[0].Summary.Finished)
	}
	return res[0]
}

// samplesOf lists the samples of each record of metrics.csv, and the columns.
func samplesOf(t *testing.T, dir string) (samples []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		samples = append(samples, strings.Split(line, ",")[3])
	}
	return samples
}

func TestAnEarlierCheckpointIsTakenWhereTheNewestIsDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={updates: 5}"), 6, dir, "")
	mustRunPart(t, load(t, "train.stop={updates: 9}"), 6, dir, dir)
	newest := filepath.Join(dir, checkpoint.Folder, "000000000002")
	if err := os.Truncate(filepath.Join(newest, checkpoint.ServerFile(1)), 40); err != nil {
		t.Fatal(err)
	}
	want := mustTrain(t, load(t, "train.stop={updates: 12}"), 6).Summary
	var warn lines
	res, errs := runPart(t, load(t, "train.stop={updates: 12}"), 6, dir, dir, func(o *Options) { o.Warn = &warn })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s := res[0].Summary; s.ParametersSHA256 != want.ParametersSHA256 || s.Resumed.Iteration != 5 {
		t.Errorf("resumed at %+v to sha256 %s, want %s", s.Resumed, s.ParametersSHA256, want.ParametersSHA256)
	}
	for _, text := range []string{"000000000002: server-0001.bin: it has 40 bytes", "only on rank 1",
		"going on from the one before", "000000000001"} {
		if !strings.Contains(warn.String(), text) {
			t.Errorf("no word of %q in %s", text, warn.String())
		}
	}
	got := samplesOf(t, dir)
	for i := 2; i < len(got); i++ {
		if len(got[i]) < len(got[i-1]) {
			t.Errorf("records at %v samples: what came after the checkpoint is still there", got)
		}
	}
	for n := range 2 { // the error names all, if none is complete
		if err := os.Remove(filepath.Join(dir, checkpoint.Folder, fmt.Sprintf("%012d", 1+2*n), checkpoint.WorkerFile(2))); err != nil {
			t.Fatal(err)
		}
	}
	_, errs = runPart(t, load(t), 6, dir, dir, nil)
	for rank, err := range errs {
		var agreed *ExitError
		if !errors.As(err, &agreed) || agreed.Code != CodeUsage ||
			!strings.Contains(err.Error(), "no checkpoint is complete; to start again, leave --resume out") ||
			strings.Count(err.Error(), "worker-0002.bin: it is missing") != 2 {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

func TestResumeAutoBeginsWhereThereIsNothing(t *testing.T) {
	root := t.TempDir()
	c := load(t, "train.stop={updates: 5}")
	run := func(resume string) Result {
		t.Helper()
		res, errs := world(t, c, 6, func(o *Options) {
			o.Resume = resume
			if o.Transport.Rank() == 0 {
				o.Lead.Folder = &metrics.FolderSpec{Root: root, Name: "auto", JobID: "1"}
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return res[0]
	}
	first := run(resume.Auto)
	if first.Summary.Resumed != nil {
		t.Fatalf("resumed %+v", first.Summary.Resumed)
	}
	c = load(t, "train.stop={updates: 8}")
	if next := run(resume.Auto); next.Dir != first.Dir || next.Summary.Resumed == nil || next.Summary.Iterations != 8 {
		t.Errorf("%s after %s, resumed %+v", next.Dir, first.Dir, next.Summary.Resumed)
	}
	if fresh := run(""); fresh.Dir == first.Dir || fresh.Summary.Resumed != nil {
		t.Errorf("without --resume the run resumed in %s", fresh.Dir)
	}
	// A run that was killed before its first checkpoint begins anew in its folder.
	dir := filepath.Join(root, "out")
	mustRunPart(t, load(t, "train.stop={updates: 5}", "checkpoint.keep=0"), 6, dir, "")
	if _, err := os.Stat(filepath.Join(dir, checkpoint.Folder)); err == nil {
		t.Error("keep: 0 left checkpoints")
	}
	if s := mustRunPart(t, c, 6, dir, resume.Auto).Summary; s.Resumed != nil || s.Iterations != 8 {
		t.Errorf("%d iterations, resumed %+v", s.Iterations, s.Resumed)
	}
}

// killedAfter keeps the checkpoints of a run up to that number, as if it had been killed before the next one.
func killedAfter(t *testing.T, dir string, number int) {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) <= number {
		t.Fatalf("%d checkpoints, want more than %d: %v", len(dirs), number, err)
	}
	for _, d := range dirs {
		if filepath.Base(d) > fmt.Sprintf("%012d", number) {
			if err := os.RemoveAll(d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// interrupted runs the first part of a run, until it has written that many checkpoints.
func interrupted(t *testing.T, c *configs.Config, n int, dir string, number int) {
	t.Helper()
	signals, over := make(chan string, 1), make(chan struct{})
	go interruptAt(dir, number, signals, over)
	res, errs := runPart(t, c, n, dir, "", func(o *Options) {
		if o.Transport.Rank() == 0 {
			o.Interrupt = signals
		}
	})
	close(over)
	if err := errors.Join(errs...); err != nil || res[0].Summary.Finished != "stopped by SIGTERM" {
		t.Fatalf("finished %q: %v", res[0].Summary.Finished, err)
	}
}

// interruptAt sends a signal when a run has written that many checkpoints.
func interruptAt(dir string, number int, signals chan<- string, over <-chan struct{}) {
	for {
		if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) >= number {
			break
		}
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
	}
	signals <- "SIGTERM"
}

// updates is the budget of so many versions.
func updates(n int64) string { return fmt.Sprintf("train.stop={updates: %d}", n) }

// recorded trains with a run folder and returns the content of its iterations.csv.
func recorded(t *testing.T, ranks int, warn *lines, set ...string) (*metrics.Summary, [][]timings.Iteration) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := world(t, load(t, set...), ranks, func(o *Options) {
		o.Warn = warn
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all, err := timings.Read(filepath.Join(dir, timings.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return res[0].Summary, all
}

// Rows that are shuffled in windows are those of the same iterations in a run that resumes, in one of another number of servers, and in
// virtual time.
func TestWindowsOfRowsResumeBitEqual(t *testing.T) {
	windows := []string{withoutMemory, "evaluate.every_epochs=0", "data.shuffle=window", "data.window_rows=64",
		"sync=[{match: '*', scheme: drop, contributors: step}]"}
	set := func(more ...string) *configs.Config { return load(t, append(slices.Clone(windows), more...)...) }
	c := set("train.stop={updates: 40}")
	c.Simulate.Workers = 4
	whole := mustTrain(t, c, 4+c.Cluster.Servers).Summary
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, set("train.stop={updates: 17}"), 6, dir, "")
	res, errs := runPart(t, set("train.stop={updates: 40}", "cluster.servers=3"), 7, dir, dir, func(o *Options) {
		o.AllowChanged = []string{"cluster.servers"}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := res[0].Summary; got.ParametersSHA256 != whole.ParametersSHA256 {
		t.Errorf("resumed to parameters %s, want %s", got.ParametersSHA256, whole.ParametersSHA256)
	}
	without := []string{withoutMemory, "evaluate.every_epochs=0", windows[len(windows)-1], "train.stop={updates: 40}"}
	if full := mustTrain(t, load(t, without...), 6).Summary; full.ParametersSHA256 == whole.ParametersSHA256 {
		t.Error("windows change nothing")
	}
	sameAsSimulated(t, c, whole, station.Axes{})
}
