package runtime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/show/metrics"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// dealt are the settings of a run of 207 rows in 6 iterations an epoch, with a worker three times as slow as the others.
var dealt = []string{"cluster.servers=1", "data={set: generated, rows: 207, features: 8, classes: 4}",
	"model={name: synthetic, layers: [64, 32], compute: {per_sample: 200us}}",
	"train={batch_global: 40, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 4}}", "work.policy=dbs",
	"faults=[{worker: 3, slow: {factor: 3}}]", "evaluate.every_epochs=0"}

// DBS deals by what the workers computed in the epoch before, as iterations.csv has it: in proportion to samples per
// second of computing, to within a sample. Each epoch has every sample once.
func TestDBSDealsByTheTimesOfTheEpochBefore(t *testing.T) {
	for name, set := range map[string][]string{
		"spread":     {"cluster.placement=spread"},
		"colocate":   {"cluster.placement=colocate"},
		"hierarchy":  {"cluster.hierarchy=node"},
		"no overlap": {"send.overlap=false"},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := 5
			if name == "colocate" {
				ranks = 4
			}
			s, all := recorded(t, ranks, &lines{}, slices.Concat(dealt, set)...)
			if s.Samples != 4*207 || s.Updates != 4*6 {
				t.Errorf("%d samples in %d updates, want 4 epochs of 207 in 6", s.Samples, s.Updates)
			}
			share := []float64{10, 10, 10, 10}
			for epoch := range 4 {
				samples, batches := 0, make([]int, 4)
				speeds, sum := make([]float64, 4), 0.0
				for w, of := range all {
					n, took := 0, time.Duration(0)
					for _, it := range of[epoch*6 : epoch*6+6] {
						n += it.Samples
						batches[w] = max(batches[w], it.Samples)
						took += it.Compute
					}
					samples += n
					speeds[w] = float64(n) / took.Seconds()
					sum += speeds[w]
				}
				if samples != 207 {
					t.Errorf("epoch %d has %d samples", epoch, samples)
				}
				least := slices.Min(share) // a share below one sample is rounded up, which takes from the others
				for w, b := range batches {
					if least >= 1 && math.Abs(float64(b)-share[w]) > 1.001 {
						t.Errorf("epoch %d: batches %v, shares %v", epoch, batches, share)
					}
				}
				for w := range share {
					share[w] = 40 * speeds[w] / sum
				}
			}
		})
	}
}

// countedData counts how often each row is read.
type countedData struct {
	dataset.Table
	reads []atomic.Int32
}

func (d *countedData) Fill(x []float32, y []int32, rows []int32) {
	for _, r := range rows {
		d.reads[r].Add(1)
	}
	d.Table.Fill(x, y, rows)
}

// counting makes ranks count the rows that they read, of 207.
func counting() (reads []atomic.Int32, change func(*Options)) {
	reads = make([]atomic.Int32, 207)
	return reads, func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Train = &countedData{set.Train, reads}
			return &mine, nil
		}
	}
}

// Each epoch computes every row once, whatever the times: also with rows left that are fewer than workers, in teams,
// and in two parts, of which the second resumes within an epoch or at its end. Under a scheme in which workers are at
// different iterations they compute at most one iteration more.
func TestEpochsThatAreDealtHaveEachRowOnce(t *testing.T) {
	for name, c := range map[string]struct {
		hosts string
		set   []string
		parts []string // when the parts but the last end
		more  bool
	}{
		"bsp":                   {hosts: "aabbb"},
		"a row more at the end": {hosts: "aabbb", set: []string{"train.batch_global=103"}},
		"teams":                 {hosts: "aabbb", set: []string{"cluster.hierarchy=node"}},
		"within an epoch":       {hosts: "aabbb", parts: []string{"{updates: 3}", "{updates: 14}"}},
		"at the end":            {hosts: "aabbb", parts: []string{"{updates: 6}", "{updates: 12}"}},
		"teams, in parts": {hosts: "aabbb", set: []string{"cluster.hierarchy=node"},
			parts: []string{"{updates: 6}", "{updates: 9}", "{updates: 11}"}},
		"colocate, in parts": {hosts: "abcd", set: []string{"cluster.placement=colocate"}, parts: []string{"{updates: 6}", "{updates: 10}"}},
		"asp":                {hosts: "aabbb", set: []string{"sync=[{match: '*', scheme: asp}]"}, more: true},
		"ssp": {hosts: "aabbb",
			set: []string{"sync=[{match: '*', scheme: ssp, staleness: 2}]", "train.batch_global=103"}, more: true},
		"r2sp":                  {hosts: "aabbb", set: []string{"sync=[{match: '*', scheme: r2sp}]"}, more: true},
		"pslite":                {hosts: "aabbb", set: []string{"baseline=pslite"}},
		"allreduce":             {hosts: "abcd", set: []string{"baseline=allreduce"}},
		"allreduce, a row more": {hosts: "abcd", set: []string{"baseline=allreduce", "train.batch_global=103"}},
	} {
		if !runsInRaceMode(name, "bsp", "within an epoch", "teams, in parts", "colocate, in parts", "ssp", "allreduce, a row more") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			reads, count := counting()
			resume := ""
			var s *metrics.Summary
			for _, stop := range append(slices.Clone(c.parts), "{epochs: 4}") {
				cfg := load(t, slices.Concat(dealt, []string{"sync=[{match: '*', scheme: bsp}]"}, c.set, []string{"train.stop=" + stop})...)
				res, errs := runOver(t, hosted(c.hosts), cfg, func(o *Options) {
					count(o)
					o.Resume, o.Host = resume, c.hosts[o.Transport.Rank():][:1]
					if o.Transport.Rank() == 0 {
						o.Lead.Folder = &metrics.FolderSpec{Out: dir}
					}
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				if s, resume = res[0].Summary, dir; s.Finished != metrics.FinishedOK {
					t.Fatalf("finished %q", s.Finished)
				}
			}
			if s.Samples != 4*207 && (!c.more || s.Samples < 4*207) {
				t.Errorf("%d samples", s.Samples)
			}
			for row := range reads {
				if n := reads[row].Load(); n != 4 && (!c.more || n < 4 || n > 5) {
					t.Fatalf("row %d was computed %d times in 4 epochs", row, n)
				}
			}
		})
	}
}

// A run that replays the record of another has its batches, and under bsp its parameters to the bit: on other workers
// that are slow, and also if it is stopped and resumes, or resumes from a checkpoint of the way.
func TestAReplayedRunIsBitEqual(t *testing.T) {
	for name, c := range map[string]struct {
		hosts string
		set   []string
	}{
		"dbs":            {"aabbb", nil},
		"teams":          {"aabbb", []string{"cluster.hierarchy=node"}},
		"colocate":       {"abcd", []string{"cluster.placement=colocate"}},
		"r2sp_batch":     {"aabbb", []string{"work={policy: r2sp_batch, profile: 3, rounds: 1}"}},
		"r2sp_batch, 5s": {"aabbb", []string{"work={policy: r2sp_batch, profile: 5, rounds: 2, delta: 0.1}", "cluster.placement=spread"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(dir, resume string, set ...string) *metrics.Summary {
				t.Helper()
				cfg := load(t, slices.Concat(dealt,
					[]string{"sync=[{match: '*', scheme: bsp}]", "model={name: mlp, layers: [16]}",
						"data={set: generated, rows: 207, test_rows: 40, features: 8, classes: 4}"}, c.set, set)...)
				res, errs := runOver(t, hosted(c.hosts), cfg, func(o *Options) {
					o.Resume, o.Host = resume, c.hosts[o.Transport.Rank():][:1]
					if o.Transport.Rank() == 0 {
						o.Lead.Folder = &metrics.FolderSpec{Out: dir}
					}
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				if s := res[0].Summary; s.Finished != metrics.FinishedOK {
					t.Fatalf("finished %q", s.Finished)
				}
				return res[0].Summary
			}
			tmp := t.TempDir()
			first := filepath.Join(tmp, "first")
			slow := "faults=[{worker: 3, slow: {sleep: 3ms}}]"
			want := run(first, "", slow)
			record := filepath.Join(first, work.RecordName)
			text, err := os.ReadFile(record)
			if err != nil || len(strings.Split(string(text), "\n")) < 4*3+2 {
				t.Fatalf("the record is %q, %v", text, err)
			}
			replay := "work.replay=" + record
			other := "faults=[{worker: 0, slow: {sleep: 2ms}}, {worker: 1, slow: {kind: exponential, sleep: 1ms}}]"
			if got := run(filepath.Join(tmp, "replayed"), "", other, replay); got.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("replayed: %s, want %s", got.ParametersSHA256, want.ParametersSHA256)
			}
			for _, updates := range []int{3, 6, 14} {
				dir := filepath.Join(tmp, fmt.Sprint("stopped at ", updates))
				run(dir, "", other, replay, fmt.Sprintf("train.stop={updates: %d}", updates))
				if got := run(dir, dir, other, replay); got.ParametersSHA256 != want.ParametersSHA256 {
					t.Errorf("stopped at %d: %s, want %s", updates, got.ParametersSHA256, want.ParametersSHA256)
				}
			}
			var dir string
			var dirs []string
			for k := 0; len(dirs) < 3; k++ { // a busy disk may leave no time for one beside the last
				if k == 20 {
					t.Fatalf("%d checkpoints in 20 runs", len(dirs))
				}
				dir = filepath.Join(tmp, fmt.Sprint("on the way ", k))
				run(dir, "", other, replay, "checkpoint={every_updates: 3, keep: 1000}")
				if dirs, err = checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil {
					t.Fatal(err)
				}
			}
			killedAfter(t, dir, len(dirs)-2)
			if got := run(dir, dir, other, replay, "checkpoint={every_updates: 3, keep: 1000}"); got.ParametersSHA256 != want.ParametersSHA256 {
				t.Errorf("from a checkpoint of the way: %s, want %s", got.ParametersSHA256, want.ParametersSHA256)
			}
		})
	}
}

// Pauses for checkpoints come while some workers wait for their batches and others compute: nobody waits for ever,
// and a run resumes from each with every push once.
func TestPausesWhileBatchesAreDealt(t *testing.T) {
	for _, sync := range []string{"{match: '*', scheme: asp}", "{match: '*', scheme: ssp, staleness: 3}",
		"{match: '*.bias', scheme: bsp}, {match: '*', scheme: ssp, staleness: 3}"} {
		for _, policy := range []string{"{policy: dbs}", "{policy: r2sp_batch, profile: 2, rounds: 1}"} {
			t.Run(sync+policy, func(t *testing.T) {
				to := func(stop string) *configs.Config {
					return load(t, slices.Concat(dealt,
						[]string{"sync=[" + sync + "]", "work=" + policy, "model={name: softmax}",
							"faults=[{worker: 3, slow: {sleep: 1ms}}]", "train.stop=" + stop, "checkpoint={every_updates: 9, keep: 1000}"})...)
				}
				dir := filepath.Join(t.TempDir(), "out")
				interrupted(t, to("{time: 1h}"), 5, dir, 5)
				killedAfter(t, dir, 3)
				m, err := checkpoint.Open(filepath.Join(dir, checkpoint.Folder, fmt.Sprintf("%012d", 3)))
				if err != nil {
					t.Fatal(err)
				}
				if s := mustRunPart(t, to(fmt.Sprintf("{samples: %d}", m.Samples+1000)), 5, dir, dir).Summary; s.Resumed == nil ||
					s.Resumed.Samples != m.Samples || s.Samples < m.Samples+1000 {
					t.Errorf("%d samples, resumed %+v", s.Samples, s.Resumed)
				}
			})
		}
	}
}

// A run resumes with another number of ranks, or with another policy: a first plan begins where the furthest worker was.
func TestDealingBeginsAnewWithOtherWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		ranks       int
		before, now []string
	}{
		"more ranks":   {7, nil, nil},
		"fewer ranks":  {3, nil, nil},
		"from fixed":   {5, []string{"work.policy=fixed"}, nil},
		"to fixed":     {5, nil, []string{"work.policy=fixed"}},
		"from profile": {5, []string{"work.policy=r2sp_batch"}, nil},
		"from asp":     {5, []string{"work.policy=fixed", "sync=[{match: '*', scheme: asp}]"}, []string{"sync=[{match: '*', scheme: asp}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			base := slices.Concat(dealt,
				[]string{"sync=[{match: '*', scheme: bsp}]", "model={name: softmax}", "faults=[{worker: 1, slow: {sleep: 1ms}}]"})
			first := mustRunPart(t, load(t, slices.Concat(base, c.before, []string{"train.stop={updates: 40}"})...), 5, dir, "").Summary
			res, errs := runPart(t, load(t, slices.Concat(base, c.now, []string{"train.stop={samples: 6000}"})...), c.ranks,
				dir, dir, func(o *Options) {
					o.AllowChanged = []string{"workers", "work.policy", "work.profile", "work.delta", "work.rounds", "work.batch_max", "work.shares"}
				})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if s := res[0].Summary; s.Finished != metrics.FinishedOK || s.Samples < 6000 || s.Resumed == nil || s.Resumed.Samples != first.Samples {
				t.Errorf("finished %q, %d samples, resumed %+v", s.Finished, s.Samples, s.Resumed)
			}
		})
	}
}

// The record of a run that resumes with other workers is kept under another name, and a new one begins.
func TestTheRecordOfOtherWorkersIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	set := slices.Concat(dealt, []string{"sync=[{match: '*', scheme: bsp}]", "model={name: softmax}", "faults=[]"})
	mustRunPart(t, load(t, append(set, "train.stop={updates: 14}")...), 5, dir, "")
	_, errs := runPart(t, load(t, append(set, "train.stop={updates: 40}")...), 4, dir, dir,
		func(o *Options) { o.AllowChanged = []string{"workers"} })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for name, workers := range map[string]int{"work-before-14.csv": 4, work.RecordName: 3} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := work.ParseRecord(text, workers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A batch that is dealt travels to a device when its iteration begins: until then its rows may change.
func TestADealtBatchTravelsWhenItsIterationBegins(t *testing.T) {
	count := &sidestest.Copies{}
	_, errs := world(t, load(t, "work={policy: dbs}", "train.stop={updates: 6}", "evaluate.every_epochs=0"), 6, func(o *Options) {
		o.NewUnit = func(int) (Unit, error) { return Unit{Device: sidestest.NewDistant(cpu.New(1), count), ID: "gpu"}, nil }
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if count.Batches < 6*4 || count.Ahead != 0 {
		t.Errorf("%d batches were uploaded, %d of them ahead", count.Batches, count.Ahead)
	}
}
