package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func TestADivergedRunStillLeavesASummary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := world(t, load(t, "train.optimizer.lr=1e38", "train.stop={epochs: 50}"), 6, func(o *Options) {
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeFailed {
			t.Fatalf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	s := res[0].Summary
	if !strings.HasPrefix(s.Finished, "diverged: the first value that is not finite, ") ||
		!strings.Contains(s.Finished, "lower train.optimizer.lr (now 1e+38)") {
		t.Errorf("finished %q", s.Finished)
	}
	if s.Iterations >= 50*480/32 {
		t.Errorf("the run continued for %d iterations", s.Iterations)
	}
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil || !json.Valid(data) {
		t.Errorf("summary.json: %v\n%s", err, data)
	}
}

// An infinite loss on the test set alone does not end a run, and is null in the summary.
func TestAnInfiniteTestLossDoesNotEndARun(t *testing.T) {
	res, errs := world(t, load(t), 6, func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			broken := *set
			broken.Test = nanTable{set.Test}
			return &broken, nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s := res[0].Summary; s.Finished != "ok" || !math.IsNaN(float64(*s.TestLoss)) {
		t.Errorf("finished %q with test loss %v", s.Finished, *s.TestLoss)
	}
}

// fullDisk is a disk that takes room writes, refuses the next most ones, and then takes writes again. It then asks the run
// to stop.
type fullDisk struct {
	lines
	room, refused, most int
	stop                chan string
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room--; f.room < 0 && f.refused < f.most {
		f.refused++
		return 0, syscall.ENOSPC
	}
	if f.refused == f.most {
		select {
		case f.stop <- "SIGTERM":
		default:
		}
	}
	return f.lines.Write(p)
}

// Output that cannot be printed does not stop training. It is warned of once, because a later line may be printed.
func TestTrainingGoesOnWhereItsOutputFindsNoRoom(t *testing.T) {
	var warn lines
	out := &fullDisk{room: 3, most: 2, stop: make(chan string, 1)}
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := runPart(t, load(t, "metrics.interval=0.1s", "train.stop={time: 1h}", "evaluate.every_epochs=0"), 6, dir,
		"", func(o *Options) {
			if o.Warn = &warn; o.Transport.Rank() == 0 {
				o.Lead.Out, o.Interrupt = out, out.stop
			}
		})
	if s := mustAgree(t, CodeAgain, res, errs).Summary; s.Finished != "stopped by SIGTERM" || out.refused != 2 {
		t.Errorf("finished %q, and %d lines were refused", s.Finished, out.refused)
	}
	if text := "left out, and training goes on: metrics: progress: no space left on device"; strings.Count(warn.String(), text) != 1 {
		t.Errorf("warned %q, want %q once", warn.String(), text)
	}
}

// nanTable is a table whose values are not numbers.
type nanTable struct{ dataset.Table }

func (n nanTable) Fill(x []float32, y []int32, rows []int32) {
	n.Table.Fill(x, y, rows)
	for i := range x {
		x[i] = float32(math.NaN())
	}
}

func TestRanksThatReadOtherDataAreRefused(t *testing.T) {
	_, errs := world(t, load(t), 6, func(o *Options) {
		if o.Transport.Rank() == 3 {
			o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
				spec.Rows = 470
				return cached(spec)
			}
		}
	})
	for i, err := range errs {
		var agreed *ExitError
		if !errors.As(err, &agreed) || agreed.Code != CodeUsage ||
			!strings.Contains(err.Error(), "rank 3, host here reads other data than rank 0: 470 training rows") {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

func TestARunThatMayNeedTooMuchMemoryIsRefused(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"sync=[{match: '*', scheme: ssp, staleness: 300000000, fold: rank}]"}, "187.75 GiB for versions, staged pushes"},
		{[]string{"sync=[{match: '*', scheme: essp, staleness: 900000}]", "cluster.memory_max=68MiB"},
			"with essp s+2 copies of its worker (lower staleness)"},
		{[]string{"model={name: mlp, layers: [2000]}", "cluster.memory_max=1MiB"}, "cluster.memory_max is 1.00 MiB"},
	} {
		_, errs := world(t, load(t, c.set...), 6, nil)
		for i, err := range errs {
			var agreed *ExitError
			if !errors.As(err, &agreed) || agreed.Code != CodeUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("rank %d: %v, want %q", i, err, c.want)
			}
		}
	}
}

// leastMemory is the smallest cluster.memory_max that admits a run of so many ranks on one host.
func leastMemory(t *testing.T, c *configs.Config, ranks int) int64 {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	hosts := slices.Repeat([]string{"here"}, ranks)
	roles, err := layout.Roles(c, hosts)
	if err != nil {
		t.Fatal(err)
	}
	tight := *c
	return int64(sort.Search(1<<30, func(bytes int) bool {
		tight.Cluster.MemoryMax = int64(bytes)
		_, err := layout.Prepare(&tight, roles, hosts, set, layout.Link{})
		return err == nil
	}))
}

// If memory is enough for a few snapshots only, later ones are left out, with a warning, and the run continues. Online
// evaluation frees snapshots.
func TestSnapshotsStayWithinTheirRoom(t *testing.T) {
	for where, want := range map[string]func(int) bool{
		"after":  func(n int) bool { return n >= 10 && n <= 30 }, // of 200
		"online": func(n int) bool { return n >= 2 },
	} {
		c := load(t, "evaluate={every_epochs: 0.2, where: "+where+"}", "train.stop={epochs: 40}", straggler)
		var warn lines
		c.Cluster.MemoryMax = leastMemory(t, c, 6) + 12*168 // a snapshot takes 168 bytes a server
		res, errs := world(t, c, 6, func(o *Options) { o.Warn = &warn })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if n := len(res[0].Summary.Evaluations); !want(n) || res[0].Summary.Finished != "ok" {
			t.Errorf("%s: %d evaluations, finished %q", where, n, res[0].Summary.Finished)
		}
		if where == "after" && !strings.Contains(warn.String(), "no room for more snapshots") {
			t.Errorf("%s: no warning in %q", where, warn.String())
		}
	}
}

func TestASignalToAnyRankEndsTheRun(t *testing.T) {
	signals := make(chan string, 1)
	time.AfterFunc(200*time.Millisecond, func() { signals <- "SIGTERM" })
	res, errs := world(t, load(t, "train.stop={time: 1h}", straggler), 6, func(o *Options) {
		if o.Transport.Rank() == 4 {
			o.Interrupt = signals
		}
	})
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeFailed {
			t.Fatalf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if s := res[0].Summary; s.Finished != "stopped by a signal to rank 4, host here" {
		t.Errorf("finished %q", s.Finished)
	}
}

// interrupting is data that sends a signal at the nth read, and is slow from then on.
type interrupting struct {
	dataset.Table
	looks   *atomic.Int32
	nth     int32
	signals chan string
	name    string // of the signal
}

func (i interrupting) Fill(x []float32, y []int32, rows []int32) {
	switch n := i.looks.Add(1); {
	case n == i.nth:
		i.signals <- i.name
		fallthrough
	case n > i.nth:
		time.Sleep(20 * time.Millisecond)
	}
	i.Table.Fill(x, y, rows)
}

func TestASignalEndsEvaluationToo(t *testing.T) {
	for where, finished := range map[string]string{
		"after":  "stopped by SIGTERM; it has trained to the end, but the evaluation is not complete",
		"online": "stopped by SIGTERM", // during training or after it
	} {
		signals, looks := make(chan string, 1), new(atomic.Int32)
		c := load(t, "evaluate={every_epochs: 0.1, where: "+where+"}", "train.stop={epochs: 30}")
		res, errs := world(t, c, 6, func(o *Options) {
			o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
				set, err := cached(spec)
				if err != nil {
					return nil, err
				}
				slow := *set
				slow.Test = interrupting{set.Test, looks, 3, signals, "SIGTERM"}
				return &slow, nil
			}
			if o.Transport.Rank() == 0 {
				o.Interrupt = signals
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		s := res[0].Summary
		if !strings.HasPrefix(s.Finished, finished) || res[5].Code != CodeFailed {
			t.Errorf("%s: finished %q, code %d", where, s.Finished, res[5].Code)
		}
		// All 300 evaluations would be some thousand reads of 20 ms.
		if n := looks.Load(); n > 300 || s.TestAccuracy != nil {
			t.Errorf("%s: %d looks at the test set, accuracy %v", where, n, s.TestAccuracy)
		}
	}
}

// Weight decay spares exactly the parameters that no_decay names.
func TestNoDecaySparesWhatItNames(t *testing.T) {
	sha := func(set ...string) string { return mustTrain(t, load(t, set...), 6).Summary.ParametersSHA256 }
	decay := "train.optimizer.weight_decay=0.1"
	none, all := sha(), sha(decay, "train.optimizer.no_decay=['*']")
	weights, biases := sha(decay), sha(decay, "train.optimizer.no_decay=['*.weight']")
	if none != all {
		t.Error("no_decay: ['*'] is not the same as no weight decay")
	}
	if weights == none || biases == none || weights == biases {
		t.Errorf("decay of weights %.8s, of biases %.8s, of nothing %.8s: all should differ", weights, biases, none)
	}
}

// The spans of a role, with the rest, add up to the training time, and no span is counted twice. A busy machine may start
// or end a rank late, or take the core away from the fast ranks, but not in every try.
func TestSpansAddUpToTheTrainingTime(t *testing.T) {
	var problems []string
	for range 3 {
		s := mustTrain(t, load(t, straggler, "train.stop={epochs: 24}"), 6).Summary
		problems = nil
		for role, times := range s.PerRole {
			total := 0.0
			for _, r := range times {
				total += float64(r.Avg)
			}
			if math.Abs(total-float64(s.TrainS)) > 0.05*float64(s.TrainS) {
				problems = append(problems, fmt.Sprintf("%s: spans add up to %v s of %v", role, total, s.TrainS))
			}
			if rest := float64(times[metrics.Rest].Min); rest < -0.02*float64(s.TrainS) {
				t.Errorf("%s: rest is %v s: a span is counted twice", role, rest)
			}
		}
		if b := s.PerRole[metrics.RoleWorker]["blocked"]; float64(b.Max) < 0.5*float64(s.TrainS) {
			problems = append(problems, fmt.Sprintf("fast workers were blocked for at most %v of %v s beside a straggler", b.Max, s.TrainS))
		}
		if len(problems) == 0 {
			return
		}
	}
	t.Errorf("three times; the last: %s", strings.Join(problems, "; "))
}

// The last record completes the metrics: the records contain all pushes, and their lead is the summary's.
func TestTheRecordsContainAllPushes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := world(t, load(t, "sync=[{match: '*', scheme: ssp, staleness: 2}]", straggler, "train.stop={samples: "+
		"960}", "evaluate.every_epochs=0"), 6, func(o *Options) {
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		Samples int64
		Lead    *int64   `json:"sync/lead_max"`
		Loss    *float64 `json:"train/loss"`
	}
	trained := 0
	for line := range strings.Lines(string(data)) {
		rec := last
		rec.Loss = nil
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Loss != nil {
			last = rec
			trained++
		}
	}
	s := res[0].Summary
	if trained < 2 || last.Samples != s.Samples || last.Lead == nil || *last.Lead != s.MaxLead {
		t.Errorf("%d train records, the last %+v; the summary has %d samples and max_lead %d", trained, last, s.Samples, s.MaxLead)
	}
}
