package settings_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/configs"
	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/straggler"
)

// dealing is a configuration with batches of a policy.
func dealing(t rapid.TB, policy string, batch int, stop, sync string) (*settings.Config, *diag.Origins) {
	t.Helper()
	c, o, ds := configs.Parse("a.yaml", fmt.Appendf(nil, `name: a
data: {set: idx, path: p}
model: {name: softmax}
train: {batch_global: %d, optimizer: {lr: 1}, stop: {%s}}
sync: [{match: '*', %s}]
work: {policy: %s}
`, batch, stop, sync, policy), configs.Options{})
	if ds.Failed() {
		t.Fatal(ds)
	}
	return c, o
}

// A policy that deals epochs ends each with an iteration of the rows that are left, if they are not fewer than the
// workers. All that counts epochs counts these iterations, too.
func TestDealtEpochsEndWithAShortIteration(t *testing.T) {
	const sync = "schemes: [{scheme: bsp, until: {epochs: 2}}, {scheme: asp, until: {epochs: 2.5}}, {scheme: ssp}]"
	f := settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 60000}
	for _, k := range []struct {
		policy             string
		iterations, pushes float64
		epoch              int64 // of a straggler
		until              [2]int64
	}{
		{"fixed", 586, 2344, 117, [2]int64{235, 293}},
		{"r2sp_batch", 586, 2344, 117, [2]int64{235, 293}},
		{"dbs", 590, 2360, 118, [2]int64{236, 295}}, // 30000 rows of the third epoch take 59 iterations
	} {
		c, _ := dealing(t, k.policy, 512, "epochs: 5", sync)
		if n := c.Length(f); n.Iterations != k.iterations || n.Pushes != k.pushes || n.Epoch != 118 {
			t.Errorf("%s: %+v", k.policy, n)
		}
		if is := c.EpochIterations(4, 60000); is != k.epoch {
			t.Errorf("%s: an epoch of a straggler is %d iterations, want %d", k.policy, is, k.epoch)
		}
		phases, err := c.PhasesOf(0, 4, 60000)
		if err != nil || phases[0].Until != k.until[0] || phases[1].Until != k.until[1] {
			t.Errorf("%s: %+v, %v", k.policy, phases, err)
		}
	}
}

// The iterations of a number of samples are those that a loop over epochs and batches counts.
func TestIterationsOfDealtEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch, rows := rapid.IntRange(4, 40).Draw(t, "batch"), rapid.IntRange(4, 100).Draw(t, "rows")
		samples := rapid.IntRange(1, 500).Draw(t, "samples")
		c, _ := dealing(t, "dbs", batch, "epochs: 1", "scheme: bsp")
		want, left := 0, 0
		for done := 0; done < samples; want++ {
			if left == 0 {
				left = rows
			}
			took := min(batch, left)
			if left-took < 4 { // fewer than there are workers: these rows are in the last batches
				took = left
			}
			done, left = done+took, left-took
		}
		if is := c.Iterations(float64(samples), int64(batch), settings.Facts{Computes: 4, Rows: rows}); is != float64(want) {
			t.Fatalf("%g iterations, want %d", is, want)
		}
		if most := c.Iterations(float64(samples), int64(batch), settings.Facts{}); most < float64(want) {
			t.Fatalf("%g iterations without the rows, but there are %d", most, want)
		}
	})
	c, _ := dealing(t, "dbs", 512, "epochs: 1", "scheme: bsp")
	if is := c.Iterations(math.MaxInt64, 512, settings.Facts{Computes: 4, Rows: 7}); !(is > 1e18) {
		t.Errorf("%g iterations of the largest budget", is)
	}
}

// A last iteration that reaches the second scheme, or the drop of a rate, is counted: what is before the end of the run is not warned of.
func TestIdleCountsShortIterations(t *testing.T) {
	f := settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 60000}
	for policy, want := range map[string]int{"fixed": 1, "dbs": 0} {
		c, o := dealing(t, policy, 512, "epochs: 5", "schemes: [{scheme: bsp, until: 588}, {scheme: asp}]")
		if ds := idle.More(c, o, f); len(ds) != want {
			t.Errorf("%s: %v", policy, ds)
		}
	}
	c, o := dealing(t, "dbs", 512, "epochs: 5", "schemes: [{scheme: bsp, until: 590}, {scheme: asp}]")
	if text := idle.More(c, o, f)[0].String(); !strings.Contains(text, "which has 590 iterations (300000 samples, 512 or so in each)") {
		t.Error(text)
	}
	f.Rows = 300
	text := ""
	for _, d := range idle.More(c, o, f) {
		text += d.String() + "\n"
	}
	if !strings.Contains(text, "train.batch_global: 512 samples in an iteration, but the training set has 300 rows: "+
		"work.policy dbs computes each row once an epoch, so an iteration has 300 samples; set it to 300 or less") ||
		strings.Contains(text, "more than once") {
		t.Error(text)
	}
}

// The slow epochs of the disturbance test of DBS are those that DBS deals: the time of one falls on all its iterations.
func TestSlowEpochsAreThoseThatAreDealt(t *testing.T) {
	const slept = 117 * 118 * time.Millisecond
	for policy, want := range map[string]time.Duration{"fixed": 118 * time.Millisecond, "dbs": 117 * time.Millisecond} {
		c, _ := dealing(t, policy, 512, "epochs: 5", "scheme: bsp")
		c.Faults = []settings.Fault{{Worker: -1,
			Slow: straggler.Spec{Kind: "dbs", Chance: 1, EpochsMin: 1, EpochsMax: 1, SleepMin: slept, SleepMax: slept}}}
		slow, _, err := c.Stragglers(0, 4, 60000, nil)
		if err != nil {
			t.Fatal(err)
		}
		if is := slow.Within(1).Sleep + slow.Before(2); is != want {
			t.Errorf("%s: an iteration sleeps %v, want %v", policy, is, want)
		}
	}
}

// Where facts are missing, the length of a run is never below what it is with them.
func TestLengthWithoutFactsIsTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []string{"scheme: bsp", "scheme: asp", "scheme: ssp, staleness: 1", "scheme: softsync, q: 5", "scheme: drop, required: 2"}
		policy := rapid.SampledFrom([]string{"fixed", "dbs"}).Draw(t, "policy")
		if policy == "dbs" {
			rules = rules[:4]
		}
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		batch := rapid.SampledFrom([]string{"batch_per_worker: 7", "batch_global: 100"}).Draw(t, "batch")
		stop := rapid.SampledFrom([]string{"epochs: 3", "samples: 5000", "updates: 77", "updates: 50, samples: 900",
			"epochs: 2, updates: 30", "time: 1h"}).Draw(t, "stop")
		c, _, ds := configs.Parse("a.yaml", fmt.Appendf(nil, "name: a\ndata: {set: idx, path: p}\nmodel: {name: softmax}\ntrain: "+
			"{%s, optimizer: {lr: 1}, stop: {%s}}\nsync: [{match: '*', %s}]\nwork: {policy: %s}\n", batch, stop, rule, policy), configs.Options{})
		if ds.Failed() {
			t.Fatal(ds)
		}
		workers := rapid.IntRange(1, 20).Draw(t, "workers")
		f := settings.Facts{Workers: workers, Computes: workers * rapid.IntRange(1, 3).Draw(t, "team"),
			Rows: rapid.IntRange(100, 10000).Draw(t, "rows"), Lead: 1}
		is := c.Length(f)
		for _, less := range []settings.Facts{{}, {Rows: f.Rows}, {Workers: f.Workers, Computes: f.Computes}} {
			if n := c.Length(less); n.Iterations < is.Iterations || n.Pushes < is.Pushes || n.Samples < is.Samples ||
				n.PerIteration > is.PerIteration {
				t.Fatalf("%+v with %+v, but %+v with %+v", n, less, is, f)
			}
		}
		if limited := !strings.HasPrefix(stop, "time"); limited == math.IsInf(is.Iterations, 1) {
			t.Fatalf("%s: %+v", stop, is)
		}
	})
}

// A budget that does not fit an integer is the largest there is, and not a negative one, which would be none.
func TestABudgetBeyondIntegersIsTheLargest(t *testing.T) {
	if n := (settings.Stop{Epochs: 1e18}).SampleBudget(60000); n != math.MaxInt64 {
		t.Errorf("a budget of %d samples", n)
	}
	if n := (settings.Evaluate{EveryEpochs: 1e18}).Samples(60000); n != math.MaxInt64 {
		t.Errorf("an evaluation every %d samples", n)
	}
}

// A number of contributors that no run has is not taken for a negative number of samples.
func TestRequiredBeyondIntegersLeavesTheLength(t *testing.T) {
	for _, required := range []int64{1, 2, 1 << 61, 1<<61 + 1, math.MaxInt64} {
		c, _, ds := configs.Parse("a.yaml", fmt.Appendf(nil, "name: a\ndata: {set: generated, rows: 640}\nmodel: {name: softmax}\n"+
			"train: {batch_global: 64, optimizer: {lr: 1}, stop: {samples: 6400}}\nsync: [{match: '*', scheme: drop, "+
			"required: %d}]\n", required), configs.Options{})
		if ds.Failed() {
			t.Fatal(ds)
		}
		for _, f := range []settings.Facts{{}, {Rows: 640}, {Workers: 4, Computes: 4, Rows: 640}} {
			want, push := int64(64), int64(1)
			if f.Computes > 0 {
				push = 16
			}
			if required <= 2 {
				want = required * push
			}
			if n := c.Length(f); n.Accepted != want || n.Iterations != math.Ceil(6400/float64(want)) {
				t.Errorf("required %d, %+v: %d samples of an iteration count, want %d: %+v", required, f, n.Accepted, want, n)
			}
		}
	}
}
