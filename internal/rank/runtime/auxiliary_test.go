package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Files other than the checkpoint do not change the exit code of a run that can be resumed, and printed output never
// changes it.

// blocking makes folders in the places of files of the run folder, when the data is first read.
type blocking struct {
	dataset.Table
	once  *sync.Once
	dir   string
	names []string
}

func (b blocking) Fill(x []float32, y []int32, rows []int32) {
	b.once.Do(func() {
		for _, name := range b.names {
			_ = os.MkdirAll(filepath.Join(durable.Beside(filepath.Join(b.dir, name)), "x"), 0o777)
		}
	})
	b.Table.Fill(x, y, rows)
}

func TestFilesBesideTheCheckpointDoNotChangeTheCodeOfAStop(t *testing.T) {
	want := mustTrain(t, load(t, "train.stop={updates: 60}"), 6).Summary.ParametersSHA256
	for _, names := range [][]string{{timings.FileName}, {"summary.txt"}, {"histograms.csv"},
		{metrics.SummaryName}, {timings.FileName, "summary.txt", "histograms.csv", metrics.SummaryName}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			dir, once, looks, signals := filepath.Join(t.TempDir(), "out"), &sync.Once{}, new(atomic.Int32), make(chan string, 1)
			var warn lines
			res, errs := runPart(t, load(t, "train.stop={updates: 60000}"), 6, dir, "", func(o *Options) {
				o.Warn = &warn
				o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
					set, err := cached(spec)
					if err != nil {
						return nil, err
					}
					spoilt := *set
					spoilt.Train = interrupting{blocking{set.Train, once, dir, names}, looks, 40, signals, "SIGTERM"}
					return &spoilt, nil
				}
				if o.Transport.Rank() == 0 {
					o.Interrupt = signals
				}
			})
			if s := mustAgree(t, CodeAgain, res, errs).Summary; s.Finished != "stopped by SIGTERM" {
				t.Errorf("finished %q", s.Finished)
			}
			if says := names[len(names)-1]; !strings.Contains(warn.String(), "some files were not written: ") ||
				!strings.Contains(warn.String(), says) {
				t.Errorf("%q does not say that %s is missing", warn.String(), says)
			}
			for _, name := range []string{"summary.txt", "histograms.csv", metrics.SummaryName} {
				_, err := os.Stat(filepath.Join(dir, name))
				blocked := strings.Contains(strings.Join(names, " "), name)
				if blocked != errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v; one file that cannot be written costs no other", name, err)
				}
			}
			for _, name := range names {
				if err := os.RemoveAll(durable.Beside(filepath.Join(dir, name))); err != nil {
					t.Fatal(err)
				}
			}
			if s := mustRunPart(t, load(t, "train.stop={updates: 60}"), 6, dir, dir).Summary; s.ParametersSHA256 != want {
				t.Errorf("resumed to sha256 %s, want %s", s.ParametersSHA256, want)
			}
		})
	}
}

// A summary that could not be written completely does not say that the run finished.
func TestAnIncompleteSummaryIsNotOK(t *testing.T) {
	dir, once := filepath.Join(t.TempDir(), "out"), &sync.Once{}
	res, errs := runPart(t, load(t), 6, dir, "", func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			spoilt := *set
			spoilt.Train = blocking{set.Train, once, dir, []string{"summary.txt"}}
			return &spoilt, nil
		}
	})
	mustAgree(t, CodeFailed, res, errs)
	if got := finishedIn(t, dir); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "summary.txt") {
		t.Errorf("finished %q", got)
	}
}

// fullOutput is a standard output on a file system that is full from the first line on.
type fullOutput struct{}

func (fullOutput) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAnOutputWithoutRoomChangesNoCode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for _, code := range []int{CodeAgain, CodeOK} {
		var warn lines
		ask, resume := signalling("SIGUSR1", 0, 40), ""
		c := load(t, "train.stop={updates: 60000}")
		if code == CodeOK {
			ask, resume, c = func(*Options) {}, dir, load(t, "train.stop={updates: 60}")
		}
		res, errs := runPart(t, c, 6, dir, resume, func(o *Options) {
			ask(o)
			if o.Warn = &warn; o.Transport.Rank() == 0 {
				o.Lead.Out = fullOutput{}
			}
		})
		if s := mustAgree(t, code, res, errs).Summary; finishedIn(t, dir) != s.Finished ||
			(s.Finished == metrics.FinishedOK) != (code == CodeOK) {
			t.Errorf("code %d: finished %q, in the file %q", code, s.Finished, finishedIn(t, dir))
		}
		if n := strings.Count(warn.String(), "left out, and training goes on: no space left on device"); n != 1 {
			t.Errorf("code %d: warned %d times in %q", code, n, warn.String())
		}
	}
	res, errs := world(t, load(t), 6, func(o *Options) { o.Lead.Out = fullOutput{} })
	mustAgree(t, CodeOK, res, errs)
}

// A part of a run that was killed leaves no rows in iterations.csv, and the next part says how many are missing.
func TestIterationsOfAKilledPartAreMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	first := mustRunPart(t, load(t, "train.stop={updates: 8}"), 6, dir, "").Summary
	if first.Workers != 4 {
		t.Fatalf("%d workers, want 4", first.Workers)
	}
	mustRunPart(t, load(t, "train.stop={updates: 20}"), 6, dir, dir)
	rows := func() int {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, timings.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n") - 1
	}
	if n := rows(); n != 4*20 {
		t.Fatalf("%d rows of two parts that ended in order, want 80", n)
	}
	// As if the second part had been killed after its checkpoint: the file is the one of the first part.
	text, err := os.ReadFile(filepath.Join(dir, timings.FileName))
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, ",", 3)
		if cells[0] == "worker" || len(cells[1]) == 1 && cells[1] < "8" {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, timings.FileName), []byte(kept.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	var warn lines
	res, errs := runPart(t, load(t, "train.stop={updates: 25}"), 6, dir, dir, func(o *Options) { o.Warn = &warn })
	s := mustAgree(t, CodeOK, res, errs).Summary
	if s.Resumed == nil || s.Resumed.Unrecorded != 4*12 || rows() != 4*13 {
		t.Errorf("resumed %+v with %d rows, want 48 that are missing and 52", s.Resumed, rows())
	}
	if want := "iterations.csv lacks the times of 48 iterations before iteration 20"; strings.Count(warn.String(), want) != 1 {
		t.Errorf("said %q, want %q once", warn.String(), want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "summary.txt")); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(string(text)), " "),
			"iterations.csv lacks the times of 48 iterations before it, over all workers") {
		t.Errorf("%v, summary.txt does not say it:\n%s", err, text)
	}
}
