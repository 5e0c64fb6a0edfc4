package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// straggler makes worker 3 sleep 3 ms in each iteration; the others need a fraction of one.
const straggler = "faults=[{worker: 3, slow: {sleep: 3ms}}]"

func sumIterations(s *metrics.Summary) int64 {
	var n int64
	for _, w := range s.PerWorker {
		n += w.Iterations
	}
	return n
}

// Every scheme learns what BSP learns: N pushes at weight 1/N weigh as much as one BSP step.
func TestEverySchemeLearnsTheSame(t *testing.T) {
	learns(t)
	// A rank without a core for a while must neither keep its rows out of the training nor, when late, decide how it ends.
	long := []string{"train.stop={epochs: 80}", "data.partition=overlap_reshuffle", "train.schedule={name: step, at: [600], factor: 0.1}"}
	bsp := float64(*mustTrain(t, load(t, long...), 6).Summary.TestAccuracy)
	for _, sync := range []string{
		"[{match: '*', scheme: asp}]", "[{match: '*', scheme: ssp, staleness: 3}]", "[{match: '*', scheme: bsp, strict: false, fold: arrival}]",
		"[{match: '*', scheme: drop, required: 3}]", "[{match: '*', scheme: r2sp}]", "[{match: '*', scheme: vap, push: delta, v0: 0.01}]",
		"[{match: '*', scheme: ssp, push: delta, cache: true}]", "[{match: '*', scheme: essp}]",
		"[{match: '*.bias', scheme: essp, staleness: 1}, {match: '*', scheme: ssp, staleness: 2, push: delta, cache: true}]",
		"[{match: '*.bias', scheme: r2sp}, {match: '*', scheme: essp}]",
		"[{match: '*.bias', scheme: asp}, {match: '*', scheme: bsp}]",
		"[{match: '*.bias', scheme: r2sp}, {match: '*', scheme: ssp}]",
		"[{match: '*.bias', scheme: bsp}, {match: '*', scheme: ssp, release: lazy}]",
	} {
		// Tests of internal/rank/coordinate run under the detector whatever schemes make the sides do; here they would only run longer.
		if !runsInRaceMode(sync, "[{match: '*', scheme: asp}]", "[{match: '*.bias', scheme: r2sp}, {match: '*', scheme: essp}]") {
			continue
		}
		if acc := float64(*mustTrain(t, load(t, append(long, "sync="+sync)...), 6).Summary.TestAccuracy); acc < bsp-0.05 {
			t.Errorf("%s: test accuracy %.3f, bsp %.3f", sync, acc, bsp)
		}
	}
}

func TestOnlineTargetStopsTheRun(t *testing.T) {
	c := load(t, "train.stop={epochs: 20000, target: 0.6}", "evaluate={every_epochs: 0.5, where: online}")
	s := mustTrain(t, c, 6).Summary
	if s.TargetReachedS == nil || s.Samples >= 20000*480 {
		t.Fatalf("target_reached_s %v after %d samples", s.TargetReachedS, s.Samples)
	}
	for i, e := range s.Evaluations {
		if hit := float64(*e.TestAccuracy) >= 0.6; hit {
			if e.AtS != *s.TargetReachedS {
				t.Errorf("evaluation %d reached the target at %v, target_reached_s is %v", i, e.AtS, *s.TargetReachedS)
			}
			break
		}
	}
}

func TestRequireATargetThatIsNotReached(t *testing.T) {
	c := load(t, "train.stop={epochs: 1, target: 1}", "evaluate={every_epochs: 1, where: online}")
	res, errs := world(t, c, 6, func(o *Options) { o.Lead.Require = true })
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeTarget {
			t.Fatalf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if s := res[0].Summary; s.TargetReachedS != nil || s.Finished != "target 1 not reached" {
		t.Errorf("finished %q", s.Finished)
	}
}

func TestTimeEndsTheRun(t *testing.T) {
	s := mustTrain(t, load(t, "train.stop={time: 300ms}", "evaluate.every_epochs=0", straggler), 6).Summary
	if s.TrainS < 0.3 || s.Finished != "ok" || s.Samples == 0 {
		t.Errorf("finished %q after %v s and %d samples", s.Finished, s.TrainS, s.Samples)
	}
}

func TestASignalEndsTheRunOrderly(t *testing.T) {
	signals, looks := make(chan string, 1), new(atomic.Int32)
	c := load(t, "train.stop={time: 1h}")
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := world(t, c, 6, func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			slow := *set
			slow.Train = interrupting{set.Train, looks, 40, signals, "SIGTERM"}
			return &slow, nil
		}
		if o.Transport.Rank() == 0 {
			o.Interrupt = signals
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeAgain {
			t.Fatalf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if s := res[0].Summary; s.Finished != "stopped by SIGTERM" || s.Samples == 0 {
		t.Errorf("finished %q", s.Finished)
	}
	for _, name := range []string{"summary.json", "summary.txt", "histograms.csv", "run.json", "plan.txt",
		"metrics.jsonl", "metrics.csv", "logs/rank-0005.log"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAStallIsExplained(t *testing.T) {
	c := load(t, "faults=[{worker: 2, slow: {sleep: 30s}}]", "stall={warn: 100ms, abort: 1h}")
	mustStall(t, "aaaaaa", c, `worker 0 has waited \d+s to start iteration 1; .*\(bsp\) of server 0`,
		`server 1 has heard nothing for \d+s; shard 1 .*\(bsp\) waits for worker 2 `)
}

func TestAStallAborts(t *testing.T) {
	c := load(t, "faults=[{worker: 2, slow: {sleep: 30s}}]", "stall={warn: 100ms, abort: 400ms}")
	var warn lines
	_, errs := world(t, c, 6, func(o *Options) { o.Warn = &warn })
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("aborted the world with code %d", CodeStall)) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	if !strings.Contains(warn.String(), "giving up after stall.abort 400ms") {
		t.Errorf("nobody gives up in %s", warn.String())
	}
}

func TestLaunchMistakesEndOnEveryRankAlike(t *testing.T) {
	for _, c := range []struct {
		name   string
		ranks  int
		set    []string
		change func(*Options)
		want   string
	}{
		{"too few ranks", 2, nil, nil, "the world has 2 ranks, but cluster.servers is 2 and at least 1 worker is needed: 2 + 1 = 3 ranks"},
		{"another config", 6, nil, func(o *Options) {
			if o.Transport.Rank() == 4 {
				o.Hash = "other"
			}
		}, "rank 4, host here reads another config than rank 0"},
		{"another build", 6, nil, func(o *Options) {
			if o.Transport.Rank() == 5 {
				o.Build = "older"
			}
		}, "rank 5, host here runs another build of fluentps than rank 0: older against test"},
		{"data missing on one host", 6, nil, func(o *Options) {
			if o.Transport.Rank() == 3 {
				o.Load = func(workload.DataSpec) (*dataset.Set, error) {
					return nil, &fs.PathError{Op: "open", Path: "/data/train", Err: fs.ErrNotExist}
				}
			}
		}, "open /data/train: file does not exist\n  (only on rank 3, host here; the other 5 of 6 ranks are fine)"},
		{"a problem before the start", 6, nil, func(o *Options) { o.Problem = errors.New("config.yaml: no such file") },
			"config.yaml: no such file"},
		{"a fault of no worker", 6, []string{"faults=[{worker: 4, slow: {factor: 2}}]"}, nil,
			"faults[0].worker is 4, but the workers are 0 to 3"},
		{"batch smaller than the workers", 6, []string{"train.batch_per_worker=null", "train.batch_global=3"}, nil,
			"train.batch_global is 3, but there are 4 workers"},
		{"fewer rows than workers", 6, []string{"data.rows=3"}, nil, "the training set has 3 rows for 4 workers"},
		{"the run folder exists", 6, nil, func(o *Options) { o.Lead.Folder = &metrics.FolderSpec{Out: "."} }, "not empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, errs := world(t, load(t, c.set...), c.ranks, c.change)
			for i, err := range errs {
				var agreed *ExitError
				if !errors.As(err, &agreed) || agreed.Code != CodeUsage || res[i].Code != CodeUsage || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("rank %d: code %d, %v\nwant %q", i, res[i].Code, err, c.want)
				}
			}
		})
	}
}

// The metrics name the time when a snapshot was taken, not when it was evaluated.
func TestEvaluationsCarryTheIterationOfTheirSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	_, errs := world(t, load(t), 6, func(o *Options) {
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
	var got []string
	for line := range strings.Lines(string(data)) {
		var rec struct {
			Iteration int64
			Samples   int64
			Accuracy  *float64 `json:"test/accuracy"`
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Accuracy != nil {
			got = append(got, fmt.Sprint(rec.Iteration, " ", rec.Samples))
		}
	}
	if want := "15 480; 30 960"; strings.Join(got, "; ") != want {
		t.Errorf("evaluations at %s, want %s", strings.Join(got, "; "), want)
	}
}
