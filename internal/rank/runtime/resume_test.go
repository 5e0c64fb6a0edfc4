package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
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

// A run under BSP that resumes from its checkpoint ends with the bits of a run that was never interrupted, for any
// optimizer, payload, placement, kind of push and slicing; also if it resumes twice.
func TestAResumedRunIsBitEqual(t *testing.T) {
	for name, set := range map[string][]string{
		"sgd":       {"train.optimizer={name: sgd, lr: 0.1}"},
		"momentum":  {"train.optimizer={name: momentum, lr: 0.05}", "train.schedule={name: step, every: 10, factor: 0.5, warm_up: 4}"},
		"nesterov":  {"train.optimizer={name: nesterov, lr: 0.05}", "shards.max_bytes=64B"},
		"adam":      {"train.optimizer={name: adam, lr: 0.01, weight_decay: 0.01}"},
		"lars":      {"train.optimizer={name: lars, lr: 1, trust: 0.02}", "shards.slice=layer", "model={name: mlp, layers: [16]}"},
		"topk":      {"payload={push: topk, ratio: 0.1}", "model={name: mlp, layers: [16]}"},
		"reused":    {"payload={push: topk, ratio: 0.1, thresholds: reused}", "model={name: mlp, layers: [16]}"},
		"delta":     {"train.optimizer={name: adam, lr: 0.01}", `sync=[{match: "*", scheme: bsp, push: delta}]`},
		"rounds":    {"baseline=pslite"},
		"keys":      {"baseline={name: pslite, keys: scalar}", "shards.slice=even"},
		"reshuffle": {"data.partition=overlap_reshuffle", "send={order: priority}", "shards.slice=slices", "shards.max_bytes=128B"},
		"same rule": {`sync=[{match: "*.bias", scheme: ssp, staleness: 0, fold: rank}, {match: "*", scheme: bsp}]`},
		"until":     {`sync=[{match: "*", schemes: [{scheme: bsp, until: 7}, {scheme: ssp, staleness: 0, fold: rank, until: 11}, {scheme: bsp}]}]`},
		"threads":   {"device.threads=3", "model={name: mlp, layers: [64]}", "cluster.shared_memory=off"},
		"colocate":  {"cluster.placement=colocate"},
		"residual": {"data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}",
			"model={name: resnet20}", "train.batch_per_worker=2", "evaluate.every_epochs=0"},
	} {
		if underRace && name == "residual" { // see runsInRaceMode
			continue
		}
		t.Run(name, func(t *testing.T) {
			n := 6
			if name == "colocate" {
				n = 4
			}
			to := func(updates int) *configs.Config {
				return load(t, append([]string{fmt.Sprintf("train.stop={updates: %d}", updates)}, set...)...)
			}
			want := mustTrain(t, to(24), n).Summary
			dir := filepath.Join(t.TempDir(), "out")
			if s := mustRunPart(t, to(7), n, dir, "").Summary; s.Iterations != 7 || s.Resumed != nil {
				t.Fatalf("%d iterations, resumed %+v", s.Iterations, s.Resumed)
			}
			mustRunPart(t, to(11), n, dir, dir)
			got := mustRunPart(t, to(24), n, dir, dir).Summary
			if got.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("sha256 %s, want %s", got.ParametersSHA256, want.ParametersSHA256)
			}
			if got.Iterations != 24 || got.Samples != want.Samples || got.Resumed == nil || got.Resumed.Iteration != 11 ||
				fmt.Sprint(got.TrainLoss) == "" || *got.TrainLoss != *want.TrainLoss {
				t.Errorf("%d iterations, %d samples of %d, loss %v of %v, resumed %+v", got.Iterations, got.Samples, want.Samples,
					*got.TrainLoss, *want.TrainLoss, got.Resumed)
			}
			if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) != 3 {
				t.Errorf("checkpoints %v, %v", dirs, err)
			}
		})
	}
}

// Under every scheme a run resumes where it was, continues its counts, and learns.
func TestEverySchemeGoesOn(t *testing.T) {
	for _, sync := range []string{
		"{match: '*', scheme: asp}", "{match: '*', scheme: ssp, staleness: 3}", "{match: '*', scheme: ssp, staleness: 2, fold: rank}",
		"{match: '*', scheme: bounded_delay, tau: 3}", "{match: '*', scheme: dssp, s_l: 2, s_u: 4}",
		"{match: '*', scheme: pssp, staleness: 1, probability: 0.5}",
		"{match: '*', scheme: dsps, s_min: 1, s_max: 3, window: 4}", "{match: '*', scheme: drop, required: 3}",
		"{match: '*', scheme: drop, required: 3, contributors: step}",
		"{match: '*', scheme: softsync, q: 3}", "{match: '*', scheme: consgd}", "{match: '*', scheme: dynsgd}", "{match: '*', scheme: r2sp}",
		"{match: '*', scheme: ringmaster, delay_threshold: 3}", "{match: '*', scheme: rennala, pushes: 3}",
		"{match: '*', scheme: ringleader}", "{match: '*', scheme: quorum, required: 2}",
		"{match: '*', scheme: essp}", "{match: '*', scheme: ssp, push: delta, cache: true}", "{match: '*', scheme: vap, push: delta, v0: 0.01}",
		"{match: '*.bias', scheme: drop, required: 3}, {match: '*', scheme: asp}",
		"{match: '*.bias', scheme: essp}, {match: '*', schemes: [{scheme: bsp, until: 9}, {scheme: asp}]}",
	} {
		if !driverDiffers(sync) { // schemes resume alike, from clocks and memory: ps/scheme.TestConformance
			continue
		}
		t.Run(sync, func(t *testing.T) {
			to := func(epochs int) *configs.Config {
				return load(t, "sync=["+sync+"]", fmt.Sprintf("train.stop={epochs: %d}", epochs), "data.partition=overlap_reshuffle")
			}
			dir := filepath.Join(t.TempDir(), "out")
			first := mustRunPart(t, to(3), 6, dir, "").Summary
			again := mustRunPart(t, to(30), 6, dir, dir).Summary
			if again.Resumed == nil || again.Resumed.Samples != first.Samples || again.Samples < 30*480 || first.Samples < 3*480 {
				t.Fatalf("%d samples, then %d after %+v", first.Samples, again.Samples, again.Resumed)
			}
			var pushed, dropped int64
			for _, w := range again.PerWorker {
				pushed += w.Samples
			}
			dropped = again.PerShard[0].Dropped * 8
			if pushed-dropped != again.Samples-first.Samples {
				t.Errorf("workers computed %d samples since, %d were dropped, and %d were counted", pushed, dropped, again.Samples-first.Samples)
			}
			if acc := float64(*again.TestAccuracy); acc < 0.75 {
				t.Errorf("test accuracy %.3f", acc)
			}
			for i := 1; i < len(again.Evaluations); i++ {
				if a, b := again.Evaluations[i-1], again.Evaluations[i]; a.Samples >= b.Samples || a.AtS > b.AtS {
					t.Errorf("evaluation at %d samples and %v s, then %d and %v", a.Samples, a.AtS, b.Samples, b.AtS)
				}
			}
		})
	}
}

func TestABudgetThatIsUsedUpEndsAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	first := mustRunPart(t, load(t), 6, dir, "").Summary
	again := mustRunPart(t, load(t), 6, dir, resume.Auto).Summary
	if again.Samples != first.Samples || again.ParametersSHA256 != first.ParametersSHA256 || len(again.Evaluations) != len(first.Evaluations) {
		t.Errorf("%d samples became %d, %d evaluations %d", first.Samples, again.Samples, len(first.Evaluations), len(again.Evaluations))
	}
	if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) != 1 {
		t.Errorf("checkpoints %v, %v", dirs, err)
	}
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

// A checkpoint that was written during training is a cut: a run that resumes from it ends with the bits and counts of a run
// that was never interrupted.
func TestAVersionThatWasSavedOnTheWayIsACut(t *testing.T) {
	for name, set := range map[string][]string{
		"momentum": nil,
		"adam":     {"train.optimizer={name: adam, lr: 0.01}", "shards.max_bytes=64B", "send={order: priority}"},
		"topk":     {"payload={push: topk, ratio: 0.1}", "model={name: mlp, layers: [16]}"},
		"delta":    {"train.optimizer={name: adam, lr: 0.01}", `sync=[{match: "*", scheme: bsp, push: delta}]`},
		"colocate": {"cluster.placement=colocate", "train.optimizer={name: adam, lr: 0.01}",
			`sync=[{match: "*", scheme: bsp, push: delta}]`, "payload={push: threshold, threshold: 0.05, ratio: 0.5}"},
		"rounds":      {"baseline=pslite"},
		"keys":        {"baseline={name: pslite, keys: list}"},
		"same rule":   {`sync=[{match: "*.bias", scheme: ssp, staleness: 0, fold: rank}, {match: "*", scheme: bsp}]`},
		"until":       {`sync=[{match: "*", schemes: [{scheme: bsp, until: 9}, {scheme: ssp, staleness: 0, fold: rank, until: 23}, {scheme: bsp}]}]`},
		"no overlap":  {"send={overlap: false}", "cluster.shared_memory=off"},
		"one server":  {"cluster.servers=1", "shards.slice=layer"},
		"idle server": {"cluster.servers=3", "shards.slice=layer"},
		"straggler":   {straggler},
	} {
		t.Run(name, func(t *testing.T) {
			n := map[string]int{"colocate": 4, "one server": 5, "idle server": 7}[name]
			if n == 0 {
				n = 6
			}
			to := func(stop string) *configs.Config {
				return load(t, append([]string{"train.stop=" + stop, "evaluate.every_epochs=0",
					"checkpoint={every_updates: 20, keep: 1000}"}, set...)...)
			}
			dir := filepath.Join(t.TempDir(), "out")
			interrupted(t, to("{time: 1h}"), n, dir, 2)
			killedAfter(t, dir, 2)
			m, err := checkpoint.Open(filepath.Join(dir, checkpoint.Folder, "000000000002"))
			if err != nil || m.Iteration < 40 || m.Samples != 32*m.Iteration || m.Starts[0] != m.Iteration {
				t.Fatalf("%+v, %v", m, err)
			}
			stop := fmt.Sprintf("{updates: %d}", m.Iteration+30)
			want, got := mustTrain(t, to(stop), n).Summary, mustRunPart(t, to(stop), n, dir, dir).Summary
			if got.ParametersSHA256 != want.ParametersSHA256 || got.Iterations != want.Iterations ||
				got.Samples != want.Samples || *got.TrainLoss != *want.TrainLoss {
				t.Errorf("from %+v: sha256 %s after %d iterations and %d samples, loss %v; want %s, %d, %d and %v",
					got.Resumed, got.ParametersSHA256, got.Iterations, got.Samples, *got.TrainLoss, want.ParametersSHA256,
					want.Iterations, want.Samples, *want.TrainLoss)
			}
			if got.Resumed == nil || got.Resumed.Iteration != m.Iteration {
				t.Errorf("resumed at %+v, not %d", got.Resumed, m.Iteration)
			}
		})
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

// Versions may count pushes, not iterations, because the run was asynchronous before. A checkpoint made later under a
// synchronous scheme still names the iterations of its workers.
func TestVersionsThatAreNoIterations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	allowed := func(o *Options) { o.AllowChanged = []string{"sync[0].scheme", "sync[0].fold"} }
	mustRunPart(t, load(t, `sync=[{match: "*", scheme: asp}]`, "train.stop={updates: 20}"), 6, dir, "")
	saved := func() int {
		dirs, _ := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
		return len(dirs)
	}
	stop, over := make(chan string, 1), make(chan struct{})
	go func() { // until a checkpoint was made during training
		for saved() < 3 {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
		stop <- "SIGTERM"
	}()
	set := []string{"train.stop={updates: 100000000}", "checkpoint={every_updates: 3, keep: 1000}", "evaluate={every_epochs: 0}"}
	res, errs := runPart(t, load(t, set...), 6, dir, dir, func(o *Options) {
		if allowed(o); o.Transport.Rank() == 0 {
			o.Interrupt = stop
		}
	})
	close(over)
	mustAgree(t, CodeAgain, res, errs)
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) < 3 {
		t.Fatal(dirs, err)
	}
	m, err := checkpoint.Open(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	set[0] = fmt.Sprintf("train.stop={updates: %d}", m.Iteration+100)
	var warn lines
	res, errs = runPart(t, load(t, set...), 6, dir, dirs[1], func(o *Options) { o.Warn = &warn })
	mustAgree(t, CodeOK, res, errs)
	if warn.String() != "" {
		t.Error(warn.String())
	}
}
