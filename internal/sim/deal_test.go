package sim_test

import (
	"slices"
	"testing"
	"time"

	"fluentps/internal/policy/work"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// DBS with workers of speed 1, 1, 1, 1/3 and a batch of 512: from the second epoch on (154, 154, 153, 51), and all
// compute equally long within 1 %. The fractions are .6, .6, .6 and .2 with two samples left, which go to the lower
// ranks. An epoch is 2.49 times as fast.
func TestDBSInVirtualTime(t *testing.T) {
	set := []string{"train.batch_per_worker=null", "train.batch_global=512", "train.stop={epochs: 4}",
		"simulate.compute={per_sample: 100us}", "simulate.per_worker=[1, 1, 1, 3]"}
	c := simtest.Setting{Workers: 4, Servers: 2, Scheme: "bsp", Bytes: 8000, Iterations: 1}
	run := func(more ...string) (epochs []time.Duration, assignments []work.Assignment) {
		c.Set = append(slices.Clone(set), more...)
		o := c.Options(t)
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
		r, err := check.Run(o)
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
			c := simtest.Setting{Workers: 5, Servers: 2, Scheme: "bsp", Bytes: 4000, Iterations: 1, Seed: uint64(seed),
				Set: []string{"train.batch_per_worker=null", "train.batch_global=43", "train.stop={epochs: 6}",
					"work={policy: " + policy + ", batch_max: 43}", "simulate.compute={fixed: 1ms, per_sample: 300us}",
					"simulate.network={bandwidth: 10MB, latency: 2ms}",
					`faults=[{worker: "*", slow: {kind: exponential, factor: 2}}, {worker: 0, pause: {at: 50ms, for: 40ms}}]`}}
			o := c.Options(t)
			o.Rows = 97
			o.Losses = []sim.Loss{{Worker: 1, At: time.Duration(seed) * 3 * time.Millisecond},
				{Worker: 3, At: time.Duration(seed*7%40) * 5 * time.Millisecond}}
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
			if _, err := check.Run(o); err != nil {
				t.Fatalf("%s, seed %d: %v", policy, seed, err)
			}
		}
	}
}

func TestWorkersThatJoinAgainGetNoBatch(t *testing.T) {
	o := simtest.Setting{Workers: 3, Servers: 1, Scheme: "bsp", Iterations: 30, Set: []string{"work.policy=dbs"}}.Options(t)
	o.Losses, o.Joins = []sim.Loss{{Worker: 1, At: time.Millisecond}}, []sim.Join{{Worker: 1, At: time.Second}}
	if _, err := check.Run(o); err == nil ||
		err.Error() != "work.policy deals batches to the workers of the start, and no worker can join again; leave "+
			"--join out, or set work.policy: fixed" {
		t.Error(err)
	}
}
