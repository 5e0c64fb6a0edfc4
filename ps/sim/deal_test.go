package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/ps/work"
)

// DBS with workers of speed 1, 1, 1, 1/3 and a batch of 512: from the second epoch on (154, 154, 153, 51), and all compute equally long within 1 %. The fractions are
// .6, .6, .6 and .2 with two samples left, which go to the lower ranks. An epoch is 2.49 times as fast.
func TestDBSInVirtualTime(t *testing.T) {
	set := []string{"train.batch_per_worker=null", "train.batch_global=512", "train.stop={epochs: 4}", "simulate.compute={per_sample: 100us}", "simulate.per_worker=[1, 1, 1, 3]"}
	c := setting{workers: 4, servers: 2, scheme: "bsp", bytes: 8000, iterations: 1}
	run := func(more ...string) (epochs []time.Duration, assignments []work.Assignment) {
		c.set = append(slices.Clone(set), more...)
		o := c.options(t)
		o.Rows = 5120
		o.Dealt = func(a work.Assignment) { assignments = append(assignments, a) }
		last, took := time.Duration(0), [4]time.Duration{}
		o.Computed = func(w int, iter int64, from, until time.Duration) {
			if took[w] = until - from; iter%10 == 9 && w == 3 {
				epochs = append(epochs, until-last)
				last = until
			}
			if len(assignments) > 0 && iter > 10 {
				least, most := slices.Min(took[:]), slices.Max(took[:])
				if float64(most) > 1.01*float64(least) {
					t.Errorf("iteration %d: computing takes %v", iter, took)
				}
			}
		}
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Summary.Samples != 4*5120 {
			t.Errorf("%d samples", r.Summary.Samples)
		}
		return epochs, assignments
	}
	fixed, none := run()
	dbs, assignments := run("work.policy=dbs")
	if len(none) != 0 || len(assignments) < 3 {
		t.Fatalf("%d and %d assignments", len(none), len(assignments))
	}
	for _, a := range assignments {
		if !slices.Equal(a.Batches, []int{154, 154, 153, 51}) || !a.Epoch || a.Until-a.From != 10 {
			t.Errorf("dealt %+v", a)
		}
	}
	if r := float64(fixed[2]) / float64(dbs[2]); r < 2.4 || r > 2.55 {
		t.Errorf("an epoch takes %v, with fixed batches %v: %.3f times as long, want 2.49", dbs[2], fixed[2], r)
	}
	if r := float64(fixed[0]) / float64(dbs[0]); r < 0.99 || r > 1.01 {
		t.Errorf("the first epoch takes %v, with fixed batches %v", dbs[0], fixed[0])
	}
}

// Workers die at any time while others wait for their batches: nobody waits for ever, and the samples of the dead go to the others.
func TestWorkersDieWhileBatchesAreDealt(t *testing.T) {
	for _, policy := range []string{"dbs", "r2sp_batch, profile: 3, rounds: 1"} {
		for seed := range int64(40) {
			c := setting{workers: 5, servers: 2, scheme: "bsp", bytes: 4000, iterations: 1, seed: uint64(seed), set: []string{"train.batch_per_worker=null", "train.batch_global=43", "train.stop={epochs: 6}",
				"work={policy: " + policy + ", batch_max: 43}", "simulate.compute={fixed: 1ms, per_sample: 300us}", "simulate.network={bandwidth: 10MB, latency: 2ms}",
				`faults=[{worker: "*", slow: {kind: exponential, factor: 2}}, {worker: 0, pause: {at: 50ms, for: 40ms}}]`}}
			o := c.options(t)
			o.Rows = 97
			o.Losses = []Loss{{Worker: 1, At: time.Duration(seed) * 3 * time.Millisecond}, {Worker: 3, At: time.Duration(seed*7%40) * 5 * time.Millisecond}}
			left := 0
			o.Dealt = func(a work.Assignment) {
				sum, gone := 0, 0
				for _, b := range a.Batches {
					sum += b
					if b == 0 {
						gone++
					}
				}
				if left = max(left, gone); sum != 43 || gone < left {
					t.Errorf("seed %d: dealt %v after %d had left", seed, a.Batches, left)
				}
			}
			if _, err := Run(o); err != nil {
				t.Fatalf("%s, seed %d: %v", policy, seed, err)
			}
		}
	}
}

func TestWorkersThatJoinAgainGetNoBatch(t *testing.T) {
	o := setting{workers: 3, servers: 1, scheme: "bsp", iterations: 30, set: []string{"work.policy=dbs"}}.options(t)
	o.Losses, o.Joins = []Loss{{Worker: 1, At: time.Millisecond}}, []Join{{Worker: 1, At: time.Second}}
	if _, err := Run(o); err == nil || err.Error() != "work.policy deals batches to the workers of the start, and no worker can join again; leave --join out, or set work.policy: fixed" {
		t.Error(err)
	}
}

// Where batches come from a record, real gradients in virtual time end with the bits of a real run under bsp; so do fixed shares.
func TestDealtSameBitsAsARun(t *testing.T) {
	for name, set := range map[string][]string{
		"dbs":        {"work={policy: dbs, replay: %s}"},
		"r2sp_batch": {"work={policy: r2sp_batch, profile: 10, rounds: 1, replay: %s}", "cluster.servers=2"},
		"shares":     {"work.shares=[3, 1, 2, 2]", "cluster.servers=2"},
		"rounds":     {"work={policy: dbs, replay: %s}", "baseline=pslite"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), work.RecordName)
			o := realOptions(t, append(slices.Clone(set[1:]), strings.Replace(set[0], "%s", path, 1))...)
			workers, rows := o.Config.Simulate.Workers, o.Rows
			text := work.RecordHeader()
			for k := range int64(40) {
				a := work.Assignment{Until: (k + 1) * work.EpochIterations(rows, o.Config.Batch(workers), workers), Batches: make([]int, workers)}
				if name == "r2sp_batch" {
					a.Until = 10 * (k + 1)
				}
				var m []work.Measured
				for w := range workers {
					took := time.Duration(1+(k+int64(w))%3) * time.Millisecond
					m = append(m, work.Measured{Iterations: 1, Samples: 10, Took: took, Median: took})
				}
				text = work.AppendRecord(text, &a, m)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			var err error
			if o.Record, err = o.Config.ReadReplay(workers); err != nil {
				t.Fatal(err)
			}
			changes := 0
			o.Dealt = func(a work.Assignment) {
				if slices.Max(a.Batches) > slices.Min(a.Batches)+1 {
					changes++
				}
			}
			got, want := runReal(t, o).Summary, measured(t, o)
			if got.ParametersSHA256 != want.ParametersSHA256 || got.Samples != want.Samples || name != "shares" && changes < 2 {
				t.Errorf("simulated %.12s after %d samples and %d unequal plans, the run %.12s after %d", got.ParametersSHA256, got.Samples, changes, want.ParametersSHA256, want.Samples)
			}
		})
	}
}
