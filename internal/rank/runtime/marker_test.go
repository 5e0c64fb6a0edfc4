package runtime

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// finishedIn returns how the run ended, from the summary in a run folder; "" if there is none.
func finishedIn(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, metrics.SummaryName))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	var s struct{ Finished string }
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Finished
}

// abortingData is data that aborts the world at the nth read.
type abortingData struct {
	dataset.Table
	looks *atomic.Int32
	nth   int32
	die   func()
}

func (d abortingData) Fill(x []float32, y []int32, rows []int32) {
	if d.looks.Add(1) == d.nth {
		d.die()
	}
	d.Table.Fill(x, y, rows)
}

// The summary says ok from the end of a run until a later part begins to train; scripts rely on that. A run that is refused
// before it trains leaves the summary.
func TestTheSummaryOfAnEarlierPartIsTakenBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t), 6, dir, "")
	if got := finishedIn(t, dir); got != metrics.FinishedOK {
		t.Fatalf("finished %q", got)
	}
	if _, errs := runPart(t, load(t, "seed=12"), 6, dir, dir, nil); errs[0] == nil || finishedIn(t, dir) != metrics.FinishedOK {
		t.Errorf("%v; finished %q after what was refused, want ok still", errs[0], finishedIn(t, dir))
	}
	more := load(t, "train.stop={updates: 60000}")
	looks := new(atomic.Int32)
	_, errs := runPart(t, more, 6, dir, dir, func(o *Options) {
		die := func() { o.Transport.Abort(CodeFailed) }
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Train = abortingData{set.Train, looks, 40, die}
			return &mine, nil
		}
	})
	if errs[0] == nil || finishedIn(t, dir) != "" {
		t.Errorf("%v; finished %q after the world ended in training, want nothing", errs[0], finishedIn(t, dir))
	}
	mustRunPart(t, load(t, "train.stop={updates: 50}"), 6, dir, dir)
	if got := finishedIn(t, dir); got != metrics.FinishedOK {
		t.Errorf("finished %q", got)
	}
}

var startOf = regexp.MustCompile(`(?m)^  "start": ".*",\n`)

// The same command once more after the end: nothing is left to train, and every file of the finished run stays as it is.
func TestTheSummaryOfAFinishedRunStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t), 6, dir, "")
	read := func() (all []string) {
		for _, name := range []string{"summary.json", "summary.txt", "histograms.csv"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, startOf.ReplaceAllString(string(data), "")) // which start says so changes
		}
		return all
	}
	before := read()
	mustRunPart(t, load(t), 6, dir, dir)
	if after := read(); !slices.Equal(before, after) {
		t.Errorf("%s\nbefore\n%s", after, before)
	}
	mustRunPart(t, load(t, "train.stop={updates: 60}"), 6, dir, dir)
	if after := read(); slices.Equal(before, after) {
		t.Error("a run that trained on left the summary as it was")
	}
}

// A run that could not write its checkpoint has failed, and its summary does not say ok.
func TestARunWithoutTheCheckpointThatIsDueHasFailed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	looks := new(atomic.Int32)
	inTheWay := func() {
		if err := os.WriteFile(filepath.Join(dir, "checkpoints"), nil, 0o666); err != nil {
			t.Error(err)
		}
	}
	res, errs := runPart(t, load(t), 6, dir, "", func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Train = abortingData{set.Train, looks, 1, inTheWay}
			return &mine, nil
		}
	})
	mustAgree(t, CodeFailed, res, errs)
	if got := finishedIn(t, dir); len(got) < 8 || got[:8] != "failed: " {
		t.Errorf("finished %q", got)
	}
}
