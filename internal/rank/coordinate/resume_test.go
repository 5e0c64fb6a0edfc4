package coordinate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
)

// runsUnderRace says whether a case of a test runs: under the race detector only those few do that run other statements than the rest.
func runsUnderRace(name string, few ...string) bool {
	return !stationtest.UnderRace || slices.Contains(few, name)
}

// killedAfter keeps the checkpoints of a run up to that number, as if it had been killed before the next one.
func killedAfter(t *testing.T, dir string, number int) {
	t.Helper()
	for _, d := range checkpointsOf(t, dir, number+1) {
		if filepath.Base(d) > fmt.Sprintf("%012d", number) {
			if err := os.RemoveAll(d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A run under BSP that resumes from its checkpoint ends with the bits of a run that was never interrupted, for any
// optimizer, payload, placement, kind of push and slicing; also if it resumes twice.
func TestAResumedRunIsBitEqual(t *testing.T) {
	for name, set := range map[string][]string{
		"sgd":      {"train.optimizer={name: sgd, lr: 0.1}"},
		"momentum": {"train.optimizer={name: momentum, lr: 0.05}", "train.schedule={name: step, every: 10, factor: 0.5, warm_up: 4}"},
		"nesterov": {"train.optimizer={name: nesterov, lr: 0.05}", "shards.max_bytes=64B"},
		"adam":     {"train.optimizer={name: adam, lr: 0.01, weight_decay: 0.01}"},
		"adamw":    {"train.optimizer={name: adamw, lr: 0.01, weight_decay: 0.5}"},
		"lars":     {"train.optimizer={name: lars, lr: 1, trust: 0.02}", "shards.slice=layer", "model={name: mlp, layers: [16]}"},
		"muon": {"train.optimizer={name: muon, lr: 0.02, weight_decay: 0.1, others: {lr: 0.01}}", "shards.slice=layer",
			"model={name: mlp, layers: [16]}"},
		"muon deltas": {"train.optimizer={name: muon, lr: 0.02}", `sync=[{match: "*", scheme: bsp, push: delta}]`,
			"model={name: mlp, layers: [16]}"},
		"muon averaged": {"train.optimizer={name: muon, lr: 0.02}", "local={policy: averaging, steps: 3, state: average}",
			"model={name: mlp, layers: [16]}"},
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
		"clip":      {"train.clip={norm: 0.3}", "train.optimizer={name: adam, lr: 0.01}", "model={name: mlp, layers: [16]}"},
		"clip muon": {"train.clip={norm: 0.3}", "train.optimizer={name: muon, lr: 0.02}", "shards.slice=layer",
			"model={name: mlp, layers: [16]}"},
		"clip mean": {"train.clip={norm: 0.3, of: mean}", `sync=[{match: "*", scheme: drop, contributors: step}]`,
			"model={name: mlp, layers: [16]}"},
		"residual": {"data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}",
			"model={name: resnet20}", "train.batch_per_worker=2", "evaluate.every_epochs=0"},
	} {
		if !runsUnderRace(name, "topk", "delta", "keys", "until") {
			continue
		}
		parts := []int{7, 11, 24}
		if name == "residual" { // whose steps are slow
			parts = []int{1, 2, 4}
		}
		t.Run(name, func(t *testing.T) {
			n := 6
			if name == "colocate" {
				n = 4
			}
			to := func(updates int) *configs.Config {
				return load(t, append([]string{fmt.Sprintf("train.stop={updates: %d}", updates)}, set...)...)
			}
			want := mustTrain(t, to(parts[2]), n).Summary
			dir := filepath.Join(t.TempDir(), "out")
			if s := mustRunPart(t, to(parts[0]), n, dir, "").Summary; s.Iterations != int64(parts[0]) || s.Resumed != nil {
				t.Fatalf("%d iterations, resumed %+v", s.Iterations, s.Resumed)
			}
			mustRunPart(t, to(parts[1]), n, dir, dir)
			got := mustRunPart(t, to(parts[2]), n, dir, dir).Summary
			if got.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("sha256 %s, want %s", got.ParametersSHA256, want.ParametersSHA256)
			}
			if got.Iterations != int64(parts[2]) || got.Samples != want.Samples || got.Resumed == nil || got.Resumed.Iteration != int64(parts[1]) ||
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

// Where a scheme makes the sides do something of their own, a run resumes where it was, too, continues its counts, and learns. Other
// schemes resume alike, from clocks and memory: ps/scheme.TestConformance.
func TestEverySchemeGoesOn(t *testing.T) {
	for _, sync := range []string{
		"{match: '*', scheme: asp}", "{match: '*', scheme: drop, required: 3}", "{match: '*', scheme: drop, required: 3, contributors: step}",
		"{match: '*', scheme: r2sp}", "{match: '*', scheme: essp}", "{match: '*', scheme: ssp, push: delta, cache: true}",
		"{match: '*', scheme: vap, push: delta, v0: 0.01}", "{match: '*.bias', scheme: drop, required: 3}, {match: '*', scheme: asp}",
		"{match: '*.bias', scheme: essp}, {match: '*', schemes: [{scheme: bsp, until: 9}, {scheme: asp}]}",
	} {
		if !runsUnderRace(sync, "{match: '*', scheme: r2sp}", "{match: '*', scheme: vap, push: delta, v0: 0.01}") {
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
		"straggler":   {"faults=[{worker: 3, slow: {sleep: 3ms}}]"},
	} {
		if !runsUnderRace(name, "colocate", "keys", "until", "idle server", "no overlap") {
			continue
		}
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
			interrupted(t, &part{config: to("{time: 1h}"), ranks: n, dir: dir}, 2)
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

// Versions may count pushes, not iterations, because the run was asynchronous before. A checkpoint made later under a
// synchronous scheme still names the iterations of its workers.
func TestVersionsThatAreNoIterations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, `sync=[{match: "*", scheme: asp}]`, updates(20)), 6, dir, "")
	to := func(stop string) *configs.Config {
		return load(t, stop, "checkpoint={every_updates: 3, keep: 1000}", "evaluate={every_epochs: 0}")
	}
	allowed := []string{"sync[0].scheme", "sync[0].fold"}
	interrupted(t, &part{config: to(updates(100000000)), ranks: 6, dir: dir, resume: dir, allow: allowed}, 3)
	from := checkpointsOf(t, dir, 3)[1]
	m, err := checkpoint.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	var warn lines
	(&part{config: to(updates(m.Iteration + 100)), ranks: 6, dir: dir, resume: from, warn: &warn}).must(t)
	if warn.String() != "" {
		t.Error(warn.String())
	}
}

// The ranks of a host that compute as one worker resume together, with the residual and the optimizer of their worker.
func TestTeamsGoOn(t *testing.T) {
	part := func(dir, resume, stop string) *part {
		return &part{config: load(t, "cluster={servers: 2, hierarchy: node}", "train.optimizer={name: adam, lr: 0.01}",
			`sync=[{match: "*.bias", scheme: bsp, push: delta}, {match: "*", scheme: bsp}]`,
			"payload={push: topk, ratio: 0.2}", "model={name: mlp, layers: [16]}", stop,
			"checkpoint={every_updates: 20, keep: 1000}", "evaluate.every_epochs=0"), hosts: "aaaabbbb", dir: dir, resume: resume}
	}
	dir := filepath.Join(t.TempDir(), "out")
	if s := interrupted(t, part(dir, "", endless), 2).Summary; s.Workers != 2 || s.Computing != 6 {
		t.Fatalf("%d workers, %d compute", s.Workers, s.Computing)
	}
	killedAfter(t, dir, 2)
	m, err := checkpoint.Open(filepath.Join(dir, checkpoint.Folder, "000000000002"))
	if err != nil || m.Computing != 6 {
		t.Fatalf("%+v, %v", m, err)
	}
	stop := updates(m.Iteration + 15)
	got := part(dir, dir, stop).must(t).Summary
	if n := len(checkpointsOf(t, dir, 3)); n != 3 {
		t.Errorf("after 15 iterations, with checkpoints every 20 and one at the end: %d", n)
	}
	want := part(filepath.Join(t.TempDir(), "whole"), resume.Auto, stop).must(t).Summary
	if got.ParametersSHA256 != want.ParametersSHA256 || got.Resumed == nil || want.Resumed != nil {
		t.Errorf("sha256 %s, want %s; resumed %+v and %+v", got.ParametersSHA256, want.ParametersSHA256, got.Resumed, want.Resumed)
	}
}

// A run that has diverged leaves no checkpoint to resume from.
func TestARunThatDivergesLeavesNoCheckpoint(t *testing.T) {
	p := &part{config: load(t, "train.optimizer={name: sgd, lr: 1e38}", "model={name: mlp, layers: [8]}", updates(10000)), ranks: 6,
		dir: filepath.Join(t.TempDir(), "out")}
	if s := p.mustEnd(t, station.CodeFailed).Summary; !strings.HasPrefix(s.Finished, "diverged") {
		t.Errorf("finished %q", s.Finished)
	}
	if dirs := checkpointsOf(t, p.dir, 0); len(dirs) != 0 {
		t.Errorf("checkpoints %v", dirs)
	}
}
