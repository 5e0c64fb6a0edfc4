package coordinate_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, set...)
}

// updates is the budget of so many versions.
func updates(n int64) string { return fmt.Sprintf("train.stop={updates: %d}", n) }

// endless is a budget that no test uses up.
const endless = "train.stop={time: 1h}"

// must is run that must end well. It returns rank 0's result.
func (p *part) must(t testing.TB) coordinate.Result {
	t.Helper()
	res := p.mustEnd(t, station.CodeOK)
	if res.Summary.Finished != metrics.FinishedOK {
		t.Fatalf("finished %q", res.Summary.Finished)
	}
	return res
}

// mustEnd is run that must end on all ranks with this code, and without an error. It returns rank 0's result.
func (p *part) mustEnd(t testing.TB, code int) coordinate.Result {
	t.Helper()
	res, errs := p.run(t)
	for rank := range res {
		if errs[rank] != nil || res[rank].Code != code {
			t.Fatalf("rank %d: code %d, %v; want %d", rank, res[rank].Code, errs[rank], code)
		}
	}
	return res[0]
}

func mustTrain(t testing.TB, c *configs.Config, ranks int) coordinate.Result {
	t.Helper()
	return (&part{config: c, ranks: ranks}).must(t)
}

func mustRunPart(t testing.TB, c *configs.Config, ranks int, dir, resume string) coordinate.Result {
	t.Helper()
	return (&part{config: c, ranks: ranks, dir: dir, resume: resume}).must(t)
}

// watched is data that calls a function when its rows are read.
type watched struct {
	dataset.Table
	read func()
}

func (w watched) Fill(x []float32, y []int32, rows []int32) {
	w.read()
	w.Table.Fill(x, y, rows)
}

// watch has each rank read data that call a function when rows are read, for training or of the test set.
func watch(train, test func()) func(int, dataset.Spec) (*dataset.Set, error) {
	return func(_ int, spec dataset.Spec) (*dataset.Set, error) {
		set, err := configstest.Data(spec)
		if err != nil {
			return nil, err
		}
		mine := *set
		if train != nil {
			mine.Train = watched{set.Train, train}
		}
		if test != nil {
			mine.Test = watched{set.Test, test}
		}
		return &mine, nil
	}
}

// at calls do when the workers read training data for the nth time, together.
func at(nth int32, do func()) func(int, dataset.Spec) (*dataset.Set, error) {
	reads := new(atomic.Int32)
	return watch(func() {
		if reads.Add(1) == nth {
			do()
		}
	}, nil)
}

// whenSaved calls do when a run has written that many checkpoints. The run begins after whenSaved, and the test calls the function that it
// returns when the run is over.
func (p *part) whenSaved(number int, do func()) (over func()) {
	p.prepare()
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			if dirs, err := checkpoint.List(filepath.Join(p.dir, checkpoint.Folder)); err != nil || len(dirs) >= number {
				do()
				return
			}
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() { close(ended); watcher.Wait() }
}

// interrupted runs the first part of a run, until it has written that many checkpoints.
func interrupted(t *testing.T, p *part, number int) coordinate.Result {
	t.Helper()
	over := p.whenSaved(number, func() { p.signal(0, "SIGTERM", false) })
	defer over()
	res := p.mustEnd(t, station.CodeAgain)
	if res.Summary.Finished != "stopped by SIGTERM" {
		t.Fatalf("finished %q", res.Summary.Finished)
	}
	return res
}

// checkpointsOf lists those of a run folder, the newest first. There must be some.
func checkpointsOf(t testing.TB, dir string, least int) []string {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) < least {
		t.Fatalf("%d checkpoints, want %d: %v", len(dirs), least, err)
	}
	return dirs
}

type lines = stationtest.Lines
