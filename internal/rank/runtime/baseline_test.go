package runtime

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

// pslite is another protocol for the same sums in the same order: its bits are those of BSP, for all kinds of keys and all
// cuts.
func TestPSLiteEndsWithTheBitsOfBSP(t *testing.T) {
	want := mustTrain(t, load(t), 6)
	var settings [][]string
	for _, keys := range shard.KeyForms() {
		for _, set := range [][]string{
			nil,
			{"shards.slice=even"},
			{"cluster.servers=3", "shards.slice=even"},
			{"cluster.placement=colocate", "cluster.servers=2"},
			{"evaluate.where=online", "cluster.servers=1"},
			{`faults=[{worker: 1, slow: {sleep: 2ms}}]`},
		} {
			settings = append(settings, append(set, "baseline.keys="+keys))
		}
	}
	for _, set := range append(settings, []string{"baseline.keys=tensor", "shards.slice=layer"}, nil) {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			c := load(t, append([]string{"baseline=pslite"}, set...)...)
			keys := shard.KeysTensor // the default of baseline: pslite
			if set != nil {
				keys = c.BaselineKeys
			}
			ranks := c.Cluster.Servers + 4
			if c.Cluster.Placement == "colocate" {
				ranks = 4
			}
			got := mustTrain(t, c, ranks).Summary
			if got.ParametersSHA256 != want.Summary.ParametersSHA256 || got.Baseline != "pslite" || got.BaselineKeys != keys ||
				got.Finished != "ok" {
				t.Errorf("%s ended %q with %s, bsp with %s", got.Baseline, got.Finished, got.ParametersSHA256, want.Summary.ParametersSHA256)
			}
			if got.Samples != want.Summary.Samples || got.Iterations != 30 ||
				*got.TestAccuracy != *want.Summary.TestAccuracy || len(got.Evaluations) != len(want.Summary.Evaluations) {
				t.Errorf("summary %+v", got)
			}
			for _, sh := range got.PerShard {
				if sh.Pushes != 120 || sh.DelayedPulls != 0 {
					t.Errorf("shard %s had %d pushes, and %d pulls were delayed: after the barrier none may be", sh.Name, sh.Pushes, sh.DelayedPulls)
				}
			}
		})
	}
}

// Each tensor has a key and a message, and PS-Lite's own slicer puts all on server 0.
func TestPSLiteHasAShardForEveryTensor(t *testing.T) {
	s := mustTrain(t, load(t, "baseline=pslite", "model={name: mlp, layers: [12]}", "shards.max_bytes=64B", "train.stop.updates=3"), 6).Summary
	var got []string
	for _, sh := range s.PerShard {
		got = append(got, sh.Name)
		if sh.Server != 0 {
			t.Errorf("%s lies on server %d", sh.Name, sh.Server)
		}
	}
	if want := "*/fc1.weight */fc1.bias */fc2.weight */fc2.bias"; strings.Join(got, " ") != want {
		t.Errorf("shards %s, want %s", strings.Join(got, " "), want)
	}
}

// The collective adds in another order than a server, so the result equals BSP's within float tolerance.
func TestAllreduceTrainsAsBSP(t *testing.T) {
	for _, set := range [][]string{
		nil,
		{"train.optimizer.name=nesterov", "train.optimizer.weight_decay=0.01", "train.schedule={name: step, every: 10, factor: 0.5, warm_up: 5}"},
		{"train.optimizer={name: adam, lr: 0.01, epsilon: 1e-3}", "train.schedule={name: poly, over: 25, warm_up: 5}"},
		{"train.optimizer={name: lars, lr: 2, trust: 0.02}", "shards.slice=layer", "model={name: mlp, layers: [12, 6]}"},
		{"train.optimizer={name: muon, lr: 0.002}", "model={name: mlp, layers: [12, 6]}", "shards.slice=layer"},
		{"train.stop={samples: 950}", "model={name: mlp, layers: [12, 6]}"},
		{"evaluate.where=online"},
		{`faults=[{worker: 2, slow: {sleep: 2ms}}]`},
	} {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			want := mustTrain(t, load(t, set...), 6)
			got := mustTrain(t, load(t, append(set, "baseline=allreduce")...), 4)
			a, b := got.Summary, want.Summary
			if a.Baseline != "allreduce" || a.Finished != "ok" || a.Servers != 0 || a.Workers != 4 || len(a.PerShard) != 0 || a.MaxLead != 0 {
				t.Errorf("summary %+v", a)
			}
			if a.Iterations != b.Iterations || a.Samples != b.Samples || len(a.Evaluations) != len(b.Evaluations) || a.BytesSent != a.BytesReceived {
				t.Errorf("%d iterations, %d samples, %d evaluations, %d bytes out, %d in; bsp has %d, %d, %d", a.Iterations,
					a.Samples, len(a.Evaluations), a.BytesSent, a.BytesReceived,
					b.Iterations, b.Samples, len(b.Evaluations))
			}
			if x := math.Abs(float64(*a.TrainLoss - *b.TrainLoss)); x > 1e-4 {
				t.Errorf("train loss %v, bsp %v", *a.TrainLoss, *b.TrainLoss)
			}
			if len(got.Parameters) != len(want.Parameters) {
				t.Fatalf("%d parameters, bsp %d", len(got.Parameters), len(want.Parameters))
			}
			for i, x := range got.Parameters {
				if y := want.Parameters[i]; math.Abs(float64(x-y)) > 1e-4*(1+math.Abs(float64(y))) {
					t.Fatalf("parameter %d is %v, bsp %v", i, x, y)
				}
			}
			for i, e := range a.Evaluations {
				if x := math.Abs(float64(*e.TestAccuracy - *b.Evaluations[i].TestAccuracy)); x > 0.011 || e.Samples != b.Evaluations[i].Samples {
					t.Errorf("evaluation %+v, bsp %+v", e, b.Evaluations[i])
				}
			}
		})
	}
}

// One rank alone adds nothing up: its bits are those of one worker under BSP.
func TestAllreduceOfOneRankIsBSPToTheBit(t *testing.T) {
	want := mustTrain(t, load(t, "cluster.servers=1"), 2).Summary
	got := mustTrain(t, load(t, "baseline=allreduce"), 1).Summary
	if got.ParametersSHA256 != want.ParametersSHA256 || got.Samples != want.Samples {
		t.Errorf("sha256 %s after %d samples, bsp %s after %d", got.ParametersSHA256, got.Samples, want.ParametersSHA256, want.Samples)
	}
}

// What only rank 0 knows, or any rank, ends all ranks of an all-reduce.
func TestReasonsToStopAnAllreduce(t *testing.T) {
	t.Run("target", func(t *testing.T) {
		s := mustTrain(t, load(t, "baseline=allreduce", "evaluate={where: online, every_samples: 64}",
			"train.stop={epochs: 2000, target: 0.75}"), 3).Summary
		if s.Finished != "ok" || s.TargetReachedS == nil || s.Samples >= 2000*480 || s.Samples%24 != 0 {
			t.Errorf("summary %+v", s)
		}
	})
	t.Run("signal", func(t *testing.T) {
		stop := make(chan string, 1)
		stop <- "SIGTERM"
		res, errs := world(t,
			load(t, "baseline=allreduce", "train.stop={epochs: 1000000}", "evaluate={every_epochs: 1000}"), 3, func(o *Options) {
				if o.Transport.Rank() == 2 {
					o.Interrupt = stop
				}
			})
		for i := range res {
			if errs[i] != nil || res[i].Code != CodeFailed {
				t.Errorf("rank %d: code %d, %v", i, res[i].Code, errs[i])
			}
		}
		if s := res[0].Summary; s.Finished != "stopped by a signal to rank 2, host here" {
			t.Errorf("finished %q", s.Finished)
		}
	})
	t.Run("diverged", func(t *testing.T) {
		res, errs := world(t, load(t, "baseline=allreduce", "train.optimizer.lr=1e38", "train.stop={epochs: 1000000}"), 3, nil)
		for i := range res {
			if errs[i] != nil || res[i].Code != CodeFailed {
				t.Errorf("rank %d: code %d, %v", i, res[i].Code, errs[i])
			}
		}
		if !strings.Contains(res[0].Summary.Finished, "diverged: the first value that is not finite, ") {
			t.Errorf("finished %q", res[0].Summary.Finished)
		}
	})
}

// damagedSums is a Transport whose collective gives one rank other bits.
type damagedSums struct {
	comm.Transport
}

func (b damagedSums) Iallreduce(buf *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return b.Transport.(comm.Reducer).Iallreduce(buf, off, n, func(d comm.Done) {
		if b.Rank() == 1 {
			buf.F32()[off/4] += 1e-3
		}
		h(d)
	})
}

func TestAllreduceThatLeavesOtherBitsIsFound(t *testing.T) {
	ts := inproc.New(3, inproc.Options{})
	for i := range ts {
		ts[i] = damagedSums{ts[i]}
	}
	res, errs := runOver(t, ts, load(t, "baseline=allreduce"), nil)
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeFailed {
			t.Errorf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if want := "after the all-reduce the parameters on rank 1, host here differ from those on rank 0, host here"; !strings.Contains(
		res[0].Summary.Finished, want) {
		t.Errorf("finished %q", res[0].Summary.Finished)
	}
}

// The run folder of a baseline has the files of any run, and names the baseline.
func TestBaselinesLeaveARunFolder(t *testing.T) {
	for _, baseline := range []string{"allreduce", "pslite"} {
		t.Run(baseline, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			_, errs := world(t, load(t, "baseline="+baseline, "metrics.interval=100ms",
				`faults=[{worker: 0, slow: {sleep: 10ms}}]`), 4, func(o *Options) {
				o.Lead.Folder, o.Lead.Start = &metrics.FolderSpec{Out: dir}, time.Now()
			})
			for i, err := range errs {
				if err != nil {
					t.Fatalf("rank %d: %v", i, err)
				}
			}
			plan, err := os.ReadFile(filepath.Join(dir, "plan.txt"))
			if err != nil || !strings.Contains(string(plan), "\nBaseline "+baseline+": ") {
				t.Errorf("plan.txt: %v\n%s", err, plan)
			}
			text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
			var s metrics.Summary
			if err == nil {
				err = json.Unmarshal(text, &s)
			}
			if err != nil || s.Baseline != baseline || s.Iterations != 30 || s.PerRole["worker"]["compute"].Min <= 0 ||
				s.PerRole["worker"]["blocked"].Max <= 0 {
				t.Errorf("summary.json: %v\n%s", err, text)
			}
			rows, err := os.ReadFile(filepath.Join(dir, "iterations.csv"))
			if n := strings.Count(string(rows), "\n"); err != nil || n != 1+30*s.Workers {
				t.Errorf("iterations.csv: %v, %d lines for %d workers", err, n, s.Workers)
			}
			lines, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
			if n := strings.Count(string(lines), "\n"); err != nil || n < 3 || !strings.Contains(string(lines), "test/accuracy") {
				t.Errorf("metrics.jsonl: %v, %d lines\n%s", err, n, lines)
			}
		})
	}
}
