package runtime

import (
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/disk/checkpoint"
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

// A rank passes on the second of two signals, which spares the final checkpoint, and looks whether the time of the run is over.
// internal/rank/coordinate says what follows.
func TestSecondSignalsAndTheClockAreHeard(t *testing.T) {
	for _, c := range []struct {
		to   int // -1: no signal
		code int
		says string
	}{
		{0, CodeFailed, "stopped by SIGTERM"},
		{4, CodeFailed, "stopped by a signal to rank 4, host here"},
		{-1, CodeAgain, "stopped by --max-time, after 1h0m0s"},
	} {
		ask := signalling("SIGTERM"+SignalAgain, c.to, 40)
		dir := filepath.Join(t.TempDir(), "out")
		res, errs := runPart(t, load(t, "train.stop={time: 2h}", "evaluate.every_epochs=0"), 6, dir, "", func(o *Options) {
			if c.to >= 0 {
				ask(o)
			} else {
				o.Lead.Start, o.Lead.MaxTime = time.Now().Add(-time.Hour), time.Hour
			}
		})
		if s := mustAgree(t, c.code, res, errs).Summary; s.Finished != c.says {
			t.Errorf("finished %q, want %q", s.Finished, c.says)
		}
	}
}
