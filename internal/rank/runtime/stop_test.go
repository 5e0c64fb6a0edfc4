package runtime

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// signalling sends a signal to one rank when a worker reads its training data for the nth time, or, with 0, before training
// begins. It slows all workers down from then on.
func signalling(name string, to int, nth int32) func(*Options) {
	signals, looks := make(chan string, 1), new(atomic.Int32)
	return func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			slow := *set
			slow.Train = interrupting{set.Train, looks, nth, signals, name}
			return &slow, nil
		}
		if o.Transport.Rank() == to {
			o.Interrupt = signals
			if nth == 0 {
				signals <- name
			}
		}
	}
}

// mustAgree fails unless every rank leaves with this code. It returns rank 0's result.
func mustAgree(t *testing.T, code int, res []Result, errs []error) Result {
	t.Helper()
	for i := range res {
		if errs[i] != nil || res[i].Code != code {
			t.Fatalf("rank %d: code %d, %v; want %d", i, res[i].Code, errs[i], code)
		}
	}
	return res[0]
}

// After any signal to any rank at any time, all ranks leave with the code that says to try again, and the resumed run ends
// with the bits of a run that was never stopped.
func TestASignalLeavesACheckpointAndItsCode(t *testing.T) {
	want := mustTrain(t, load(t, "train.stop={updates: 400}"), 6).Summary.ParametersSHA256
	for _, c := range []struct {
		name string
		to   int
		nth  int32
		says string
	}{
		{"SIGTERM", 0, 40, "stopped by SIGTERM"},
		{"SIGINT", 0, 1, "stopped by SIGINT"},
		{"SIGUSR1", 0, 40, "stopped by SIGUSR1"},
		{"SIGUSR1", 1, 40, "stopped by a signal to rank 1, host here"},
		{"SIGUSR1", 5, 40, "stopped by a signal to rank 5, host here"},
		{"SIGUSR1", 0, 0, "stopped by SIGUSR1"}, // before training begins
	} {
		t.Run(fmt.Sprintf("%s to %d at %d", c.name, c.to, c.nth), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			res, errs := runPart(t, load(t, "train.stop={updates: 60000}"), 6, dir, "", signalling(c.name, c.to, c.nth))
			if s := mustAgree(t, CodeAgain, res, errs).Summary; s.Finished != c.says || s.Iterations >= 400 {
				t.Fatalf("finished %q after %d iterations, want %q", s.Finished, s.Iterations, c.says)
			}
			if s := mustRunPart(t, load(t, "train.stop={updates: 400}"), 6, dir, dir).Summary; s.ParametersSHA256 != want || s.Iterations != 400 {
				t.Errorf("sha256 %s after %d iterations, want %s", s.ParametersSHA256, s.Iterations, want)
			}
		})
	}
}

// What the batch system knows of the signal stands behind the reason, for a signal to any rank. A batch system that does not answer
// delays the end by little.
func TestTheBatchSystemSaysWhyItStopsARun(t *testing.T) {
	t.Parallel() // it mostly waits
	hangs := make(chan struct{})
	defer close(hangs)
	for _, c := range []struct {
		to   int
		why  func() string
		says string
	}{
		{2, func() string { return "job 7 was requeued" }, "stopped by a signal to rank 2, host here: job 7 was requeued"},
		{0, func() string { return "job 7 was requeued" }, "stopped by SIGTERM: job 7 was requeued"},
		{2, func() string { return "" }, "stopped by a signal to rank 2, host here"},
		{2, func() string { <-hangs; return "late" }, "stopped by a signal to rank 2, host here"},
	} {
		ask, asked := signalling("SIGTERM", c.to, 20), new(atomic.Int32)
		begun := time.Now()
		res, errs := runPart(t, load(t, "train.stop={updates: 60000}"), 6, filepath.Join(t.TempDir(), "out"), "", func(o *Options) {
			ask(o)
			o.Lead.WhyStopped = func() string { asked.Add(1); return c.why() }
		})
		if s := mustAgree(t, CodeAgain, res, errs).Summary; s.Finished != c.says || !strings.HasPrefix(s.Finished, metrics.FinishedStopped) {
			t.Errorf("finished %q, want %q", s.Finished, c.says)
		}
		if n, took := asked.Load(), time.Since(begun); n != 1 || took > waitMax/2 {
			t.Errorf("asked %d times in %s", n, took)
		}
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
		var warn lines
		ask := signalling("SIGUSR1", 2, 20)
		res, errs := world(t, load(t, append(c.set, "train.stop={updates: 60000}")...), 6, func(o *Options) {
			ask(o)
			o.Warn = &warn
			if c.folder && o.Transport.Rank() == 0 {
				o.Lead.Folder = &metrics.FolderSpec{Out: filepath.Join(t.TempDir(), "out")}
			}
		})
		if s := mustAgree(t, CodeFailed, res, errs).Summary; s.Finished != "stopped by a signal to rank 2, host here" {
			t.Errorf("%v: finished %q", c.set, s.Finished)
		}
		if want := "no checkpoint to resume from, so exit code 1 in place of 75: " + c.says; strings.Count(warn.String(), want) != 1 {
			t.Errorf("%v: said %q, want %q once", c.set, warn.String(), want)
		}
	}
}

// --max-time counts from the start of the program, and stops all ranks in the same way, wherever the run is by then.
func TestMaxTimeStopsWithACheckpoint(t *testing.T) {
	for _, limit := range []time.Duration{1, 300 * time.Millisecond} {
		dir := filepath.Join(t.TempDir(), "out")
		res, errs := runPart(t, load(t, "train.stop={time: 1h}", "evaluate.every_epochs=0"), 6, dir, "", func(o *Options) {
			if o.Transport.Rank() == 0 {
				o.Lead.Start, o.Lead.MaxTime = time.Now(), limit
			}
		})
		s := mustAgree(t, CodeAgain, res, errs).Summary
		if s.Finished != "stopped by --max-time, after "+limit.String() || float64(s.WallS) < limit.Seconds() {
			t.Errorf("%v: finished %q after %v s", limit, s.Finished, s.WallS)
		}
		again := mustRunPart(t, load(t, fmt.Sprintf("train.stop={updates: %d}", s.Iterations+20), "evaluate.every_epochs=0"), 6, dir, dir).Summary
		if again.Resumed == nil || again.Resumed.Iteration != s.Iterations || again.Iterations != s.Iterations+20 {
			t.Errorf("%v: stopped after %d iterations, then %d; resumed %+v", limit, s.Iterations, again.Iterations, again.Resumed)
		}
	}
}

// --max-time does not change a run that ends earlier.
func TestUnusedMaxTimeChangesNothing(t *testing.T) {
	res, errs := world(t, load(t), 6, func(o *Options) { o.Lead.Start, o.Lead.MaxTime = time.Now(), time.Hour })
	if err := errors.Join(errs...); err != nil || res[0].Code != CodeOK || res[0].Summary.Finished != metrics.FinishedOK {
		t.Errorf("code %d, finished %q, %v", res[0].Code, res[0].Summary.Finished, err)
	}
}

// Every kind of rank prints its state on request, and the run continues until it is stopped.
func TestTheStateIsPrinted(t *testing.T) {
	for _, c := range []struct {
		set  []string
		rank int
		says string
	}{
		{nil, 0, ": s0 (holds back pulls of shard|has answered every pull)"},
		{nil, 4, ": w2 (computes|pushes|has waited)"},
		{[]string{"cluster.placement=colocate"}, 1, "; s1 (holds back pulls of shard|has answered every pull)"},
		{[]string{"cluster.placement=colocate"}, 1, ": w1 (computes|pushes|has waited)"},
		{[]string{"cluster={servers: 1, hierarchy: node}"}, 1, ": w0 (computes|pushes|has waited .* for its member w0.[123])"},
		{[]string{"cluster={servers: 1, hierarchy: node}"}, 2, ": w0.1 (computes iteration|has waited .* for its leader, w0)"},
		{[]string{"baseline=allreduce"}, 3, ": w3 (computes iteration|has waited .* for the other ranks in the all-reduce)"},
	} {
		signals, looks := [6]chan string{}, new(atomic.Int32)
		for i := range signals {
			signals[i] = make(chan string, 2)
		}
		said := &awaitedLines{want: []*regexp.Regexp{regexp.MustCompile(`state after .* of training.*` + c.says)},
			end: sync.OnceFunc(func() { signals[0] <- "SIGTERM" })}
		late := time.AfterFunc(waitMax, said.end)
		defer late.Stop()
		res, errs := world(t, load(t, append(c.set, "train.stop={time: 1h}", "evaluate.every_epochs=0")...), 6, func(o *Options) {
			me := o.Transport.Rank()
			o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
				set, err := cached(spec)
				if err != nil {
					return nil, err
				}
				slow := *set
				slow.Train = interrupting{set.Train, looks, 8, signals[c.rank], SignalState}
				return &slow, nil
			}
			if o.Interrupt = signals[me]; me == c.rank {
				o.Warn = said
			}
		})
		if s := mustAgree(t, CodeFailed, res, errs).Summary; s.Finished != "stopped by SIGTERM" {
			t.Errorf("%v: finished %q", c.set, s.Finished)
		}
		if list := said.missing(); len(list) > 0 {
			t.Errorf("%v: rank %d said %q, want %q", c.set, c.rank, said.String(), list)
		}
	}
}

// whenSaved sends a signal when a run has written a checkpoint.
func whenSaved(dir, name string) <-chan string {
	signals := make(chan string, 1)
	go func() {
		for end := time.Now().Add(waitMax); ; time.Sleep(time.Millisecond) {
			if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) > 0 || time.Now().After(end) {
				signals <- name
				return
			}
		}
	}()
	return signals
}

// whenSaid sends a signal when a rank has logged all of these texts to the returned buffer.
func whenSaid(t *testing.T, name string, want ...string) (*awaitedLines, <-chan string) {
	signals := make(chan string, 1)
	var once sync.Once
	said := &awaitedLines{end: func() { once.Do(func() { signals <- name }) }}
	for _, w := range want {
		said.want = append(said.want, regexp.MustCompile(regexp.QuoteMeta(w)))
	}
	late := time.AfterFunc(waitMax, said.end)
	t.Cleanup(func() { late.Stop() })
	return said, signals
}

// A second signal, to any rank, makes the run leave without a final checkpoint. If checkpoints were written during
// training, the run can be resumed, and the code says so.
func TestASecondSignalLeavesWithoutACheckpoint(t *testing.T) {
	for _, to := range []int{0, 4} {
		dir := filepath.Join(t.TempDir(), "none")
		res, errs := runPart(t, load(t, "train.stop={updates: 60000}"), 6, dir, "", signalling("SIGTERM"+SignalAgain, to, 40))
		s := mustAgree(t, CodeFailed, res, errs).Summary
		if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) > 0 ||
			!strings.HasPrefix(s.Finished, "stopped by ") {
			t.Errorf("rank %d: finished %q, checkpoints %v, %v", to, s.Finished, dirs, err)
		}

		dir = filepath.Join(t.TempDir(), "some")
		signals := whenSaved(dir, "SIGTERM"+SignalAgain)
		res, errs = runPart(t, load(t, "checkpoint.every_updates=10", "train.stop={time: 1h}", "evaluate.every_epochs=0"),
			6, dir, "", func(o *Options) {
				if o.Transport.Rank() == to {
					o.Interrupt = signals
				}
			})
		s = mustAgree(t, CodeAgain, res, errs).Summary
		dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("rank %d: checkpoints %v, %v", to, dirs, err)
		}
		if m, err := checkpoint.Open(dirs[0]); err != nil || m.Iteration > s.Iterations {
			t.Errorf("rank %d: %+v, %v after %d iterations", to, m, err, s.Iterations)
		}
	}
}
