package runtime

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/rank/coordinate"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// signallingData is test data that sends a signal when its first rows are read.
type signallingData struct {
	dataset.Table
	ask func()
}

func (l signallingData) Fill(x []float32, y []int32, rows []int32) {
	l.ask()
	l.Table.Fill(x, y, rows)
}

// stoppedWhileEvaluating asks a run to stop while it evaluates.
func stoppedWhileEvaluating(warn *lines) func(*Options) {
	signals := make(chan string)
	ask := sync.OnceFunc(func() {
		signals <- "SIGUSR1"
		signals <- SignalState // received only after the previous signal was passed on
	})
	return func(o *Options) {
		o.Warn = warn
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Test = signallingData{set.Test, ask}
			return &mine, nil
		}
		if o.Transport.Rank() == 0 {
			o.Interrupt = signals
		}
	}
}

// A run that is stopped again and again before it makes progress is not retried for ever. Its checkpoint stays good, and
// progress resets the count.
func TestStandstillsEnd(t *testing.T) {
	want := mustTrain(t, load(t, "train.stop={updates: 9}"), 6).Summary.ParametersSHA256
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={updates: 5}"), 6, dir, "")
	stopped := func(updates string, code int) string {
		t.Helper()
		var warn lines
		res, errs := runPart(t, load(t, "train.stop={updates: "+updates+"}"), 6, dir, dir, stoppedWhileEvaluating(&warn))
		mustAgree(t, code, res, errs)
		return warn.String()
	}
	for range coordinate.StandstillMax - 1 {
		if said := stopped("5", CodeAgain); strings.Contains(said, "no progress") {
			t.Errorf("said %q", said)
		}
	}
	want3 := "3 runs in a row resumed from " + filepath.Join(dir, "checkpoints", "000000000001") + " and made no progress"
	if said := stopped("5", CodeFailed); strings.Count(said, want3) != 1 {
		t.Errorf("said %q, want %q once", said, want3)
	}
	stopped("7", CodeAgain) // it made progress
	stopped("7", CodeAgain)
	if s := mustRunPart(t, load(t, "train.stop={updates: 9}"), 6, dir, dir).Summary; s.ParametersSHA256 != want || s.Resumed.Iteration != 7 {
		t.Errorf("sha256 %s, want %s; resumed %+v", s.ParametersSHA256, want, s.Resumed)
	}
}
