package coordinate_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/coordinate"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// signalled is a part of a run of 6 ranks that gets a signal: at the nth batch of its workers, or with 0 when training begins.
func signalled(t *testing.T, dir, name string, again bool, to int, nth int32, set ...string) *part {
	t.Helper()
	p := &part{config: load(t, set...), ranks: 6, dir: dir}
	if nth == 0 {
		p.begun = func(rank int) {
			if rank == to {
				p.signal(to, name, again)
			}
		}
		return p
	}
	p.load = at(nth, func() { p.signal(to, name, again) })
	return p
}

// After any signal to any rank at any time, all ranks leave with the code that says to try again, and the resumed run ends
// with the bits of a run that was never stopped.
func TestASignalLeavesACheckpointAndItsCode(t *testing.T) {
	const end = 400
	want := mustTrain(t, load(t, updates(end)), 6).Summary.ParametersSHA256
	for _, c := range []struct {
		name string
		to   int
		nth  int32
		says string
	}{
		{"SIGTERM", 0, 40, "stopped by SIGTERM"},
		{"SIGINT", 0, 1, "stopped by SIGINT"},
		{"SIGUSR1", 1, 40, "stopped by a signal to rank 1, host a"},
		{"SIGUSR1", 5, 40, "stopped by a signal to rank 5, host a"},
		{"SIGUSR1", 0, 0, "stopped by SIGUSR1"},
		{"SIGUSR1", 4, 0, "stopped by a signal to rank 4, host a"},
	} {
		name := fmt.Sprintf("%s to %d at %d", c.name, c.to, c.nth)
		if !runsUnderRace(name, "SIGTERM to 0 at 40", "SIGUSR1 to 5 at 40", "SIGUSR1 to 4 at 0") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			s := signalled(t, dir, c.name, false, c.to, c.nth, updates(60000)).mustEnd(t, station.CodeAgain).Summary
			if s.Finished != c.says || s.Iterations >= end {
				t.Fatalf("finished %q after %d iterations, want %q", s.Finished, s.Iterations, c.says)
			}
			if s := mustRunPart(t, load(t, updates(end)), 6, dir, dir).Summary; s.ParametersSHA256 != want || s.Iterations != end {
				t.Errorf("sha256 %s after %d iterations, want %s", s.ParametersSHA256, s.Iterations, want)
			}
		})
	}
}

// What the batch system knows of the signal stands behind the reason, for a signal to any rank, and it is asked once.
func TestTheBatchSystemSaysWhyItStopsARun(t *testing.T) {
	for _, c := range []struct {
		to        int
		why, says string
	}{
		{2, "job 7 was requeued", "stopped by a signal to rank 2, host a: job 7 was requeued"},
		{0, "job 7 was requeued", "stopped by SIGTERM: job 7 was requeued"},
		{2, "", "stopped by a signal to rank 2, host a"},
	} {
		var asked atomic.Int32
		p := signalled(t, filepath.Join(t.TempDir(), "out"), "SIGTERM", false, c.to, 20, updates(60000))
		p.lead = func(o *coordinate.LeadOptions) { o.WhyStopped = func() string { asked.Add(1); return c.why } }
		if s := p.mustEnd(t, station.CodeAgain).Summary; s.Finished != c.says || !strings.HasPrefix(s.Finished, metrics.FinishedStopped) ||
			asked.Load() != 1 {
			t.Errorf("finished %q, want %q; asked %d times", s.Finished, c.says, asked.Load())
		}
	}
}

// A batch system that does not answer delays the end, and does not keep the run from ending.
func TestABatchSystemThatDoesNotAnswerKeepsNobody(t *testing.T) {
	t.Parallel() // it mostly waits
	hangs := make(chan struct{})
	defer close(hangs)
	p := signalled(t, filepath.Join(t.TempDir(), "out"), "SIGTERM", false, 2, 20, updates(60000))
	p.lead = func(o *coordinate.LeadOptions) { o.WhyStopped = func() string { <-hangs; return "late" } }
	if s := p.mustEnd(t, station.CodeAgain).Summary; s.Finished != "stopped by a signal to rank 2, host a" {
		t.Errorf("finished %q", s.Finished)
	}
}

// Without a checkpoint a retry begins anew, which no script may do for ever.
func TestAStopWithoutACheckpointIsAFailure(t *testing.T) {
	for _, c := range []struct {
		set    []string
		folder bool
		says   string
	}{
		{[]string{"checkpoint.keep=0"}, true, "checkpoint.keep is 0; set it to 1 or more"},
		{[]string{"baseline=allreduce", "cluster.servers=1"}, true, "baseline allreduce has no servers that could write one"},
		{nil, false, "there is no run folder"},
	} {
		dir := ""
		if c.folder {
			dir = filepath.Join(t.TempDir(), "out")
		}
		var warn lines
		p := signalled(t, dir, "SIGUSR1", false, 2, 20, append(c.set, updates(60000))...)
		p.warn = &warn
		if s := p.mustEnd(t, station.CodeFailed).Summary; s.Finished != "stopped by a signal to rank 2, host a" {
			t.Errorf("%v: finished %q", c.set, s.Finished)
		}
		if want := "no checkpoint to resume from, so exit code 1 in place of 75: " + c.says; strings.Count(warn.String(), want) != 1 {
			t.Errorf("%v: said %q, want %q once", c.set, warn.String(), want)
		}
	}
}

// --max-time counts from the start of the program, and stops all ranks in the same way, wherever the run is by then. It does not change a
// run whose time is not over.
func TestMaxTimeStopsWithACheckpoint(t *testing.T) {
	const limit = time.Hour
	for name, c := range map[string]struct {
		before time.Duration // training
		nth    int32
		over   bool
	}{
		"when training begins": {limit, 1, true}, "in training": {limit, 80, true}, "not at all": {0, 40, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			p := &part{config: load(t, updates(100), "evaluate.every_epochs=0"), ranks: 6, dir: dir}
			p.lead = func(o *coordinate.LeadOptions) { o.Start, o.MaxTime = time.Now().Add(-c.before), limit }
			p.load = at(c.nth, func() { p.ring(0, func(r ranked) { r.Lead.CheckMaxTime(); r.Lead.Beat() }) })
			if !c.over {
				if s := p.must(t).Summary; s.Iterations != 100 {
					t.Errorf("%d iterations", s.Iterations)
				}
				return
			}
			s := p.mustEnd(t, station.CodeAgain).Summary
			if s.Finished != "stopped by --max-time, after 1h0m0s" || s.Iterations >= 100 || float64(s.WallS) < limit.Seconds() {
				t.Errorf("finished %q after %d iterations and %v s", s.Finished, s.Iterations, s.WallS)
			}
			again := mustRunPart(t, load(t, updates(s.Iterations+20), "evaluate.every_epochs=0"), 6, dir, dir).Summary
			if s.Iterations > 0 && (again.Resumed == nil || again.Resumed.Iteration != s.Iterations) || again.Iterations != s.Iterations+20 {
				t.Errorf("stopped after %d iterations, then %d; resumed %+v", s.Iterations, again.Iterations, again.Resumed)
			}
		})
	}
}

// A second signal, to any rank, makes the run leave without a final checkpoint. If checkpoints were written during
// training, the run can be resumed, and the code says so.
func TestASecondSignalLeavesWithoutACheckpoint(t *testing.T) {
	for _, to := range []int{0, 4} {
		dir := filepath.Join(t.TempDir(), "none")
		s := signalled(t, dir, "SIGTERM", true, to, 40, updates(60000)).mustEnd(t, station.CodeFailed).Summary
		if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) > 0 ||
			!strings.HasPrefix(s.Finished, "stopped by ") {
			t.Errorf("rank %d: finished %q, checkpoints %v, %v", to, s.Finished, dirs, err)
		}

		p := &part{config: load(t, "checkpoint.every_updates=10", endless, "evaluate.every_epochs=0"), ranks: 6}
		p.dir = filepath.Join(t.TempDir(), "some")
		over := p.whenSaved(1, func() { p.signal(to, "SIGTERM", true) })
		s = p.mustEnd(t, station.CodeAgain).Summary
		over()
		if m, err := checkpoint.Open(checkpointsOf(t, p.dir, 1)[0]); err != nil || m.Iteration > s.Iterations {
			t.Errorf("rank %d: %+v, %v after %d iterations", to, m, err, s.Iterations)
		}
	}
}

// A run that is stopped again and again before it makes progress is not retried for ever. Its checkpoint stays good, and
// progress resets the count.
func TestStandstillsEnd(t *testing.T) {
	want := mustTrain(t, load(t, updates(9)), 6).Summary.ParametersSHA256
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, updates(5)), 6, dir, "")
	stopped := func(n int64, code int) string { // while it evaluates
		t.Helper()
		var warn lines
		var reads atomic.Int32
		p := &part{config: load(t, updates(n)), ranks: 6, dir: dir, resume: dir, warn: &warn}
		p.load = watch(nil, func() {
			if reads.Add(1) == 1 {
				p.signal(0, "SIGUSR1", false)
			}
		})
		p.mustEnd(t, code)
		return warn.String()
	}
	for range coordinate.StandstillMax - 1 {
		if said := stopped(5, station.CodeAgain); strings.Contains(said, "no progress") {
			t.Errorf("said %q", said)
		}
	}
	want3 := "3 runs in a row resumed from " + filepath.Join(dir, "checkpoints", "000000000001") + " and made no progress"
	if said := stopped(5, station.CodeFailed); strings.Count(said, want3) != 1 {
		t.Errorf("said %q, want %q once", said, want3)
	}
	stopped(7, station.CodeAgain) // it made progress
	stopped(7, station.CodeAgain)
	if s := mustRunPart(t, load(t, updates(9)), 6, dir, dir).Summary; s.ParametersSHA256 != want || s.Resumed.Iteration != 7 {
		t.Errorf("sha256 %s, want %s; resumed %+v", s.ParametersSHA256, want, s.Resumed)
	}
}
