package configs

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
)

// localConfig is a run of 3840 samples in steps of 16 a worker.
func localConfig(t *testing.T, local, stop, sync string) (*settings.Config, *diag.Origins) {
	t.Helper()
	c, o, ds := Parse("a.yaml", fmt.Appendf(nil, `name: a
data: {set: generated, rows: 960}
model: {name: mlp, layers: [8]}
train: {batch_per_worker: 16, optimizer: {lr: 1}, schedule: {name: step, every: 60}, stop: {%s}}
local: {%s}
sync: [{match: '*', %s}]
`, stop, local, sync), Options{})
	if ds.Failed() {
		t.Fatal(ds)
	}
	return c, o
}

// Budgets count samples or versions of the lead shard, the schedule counts steps, and everything else counts exchanges.
func TestLengthOfRunsWithStepsOfTheirOwn(t *testing.T) {
	inf := math.Inf(1)
	f := settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 960, Lead: 1}
	for _, k := range []struct {
		local, stop, sync                    string
		iterations, exchanges, steps, pushes float64
		varies                               bool
		text                                 string
	}{
		{"policy: none", "epochs: 4", "scheme: bsp", 60, 60, 60, 240, false, "60 iterations (3840 samples, 64 in each)"},
		{"policy: averaging, steps: 8", "epochs: 4", "scheme: bsp", 8, 8, 60, 30, false, "60 steps (3840 samples, 64 in each)"},
		{"policy: averaging, steps: 8", "updates: 5", "scheme: bsp", 5, 5, 40, 20, false, "40 steps (train.stop.updates)"},
		{"policy: averaging, steps: 8", "epochs: 4, updates: 6", "scheme: asp", 2, 2, 16, 6, false, "16 steps (train.stop.updates)"},
		{"policy: hpsgd", "epochs: 4", "scheme: bsp", 60, 60, 60, 240, true, "60 steps (3840 samples, 64 in each)"},
		{"policy: hpsgd", "updates: 5", "scheme: bsp", 5, 5, inf, 20, true, ""},
		{"policy: post_local, steps: 4, switch: 10", "epochs: 4", "scheme: bsp", 60, 60, 60, 240, true, "60 steps (3840 samples, 64 in each)"},
		{"policy: async_local, steps: 4, dynamic: false", "epochs: 4", "scheme: asp", 15, 15, 60, 60, false,
			"60 steps (3840 samples, 64 in each)"},
		{"policy: streaming_diloco, steps: 8, fragments: 4", "epochs: 4", "scheme: bsp", 30, 8, 60, 30, false,
			"60 steps (3840 samples, 64 in each)"},
		{"policy: streaming_diloco, steps: 8, fragments: 4", "updates: 5", "scheme: bsp", 20, 5, 40, 20, false, "40 steps (train.stop.updates)"},
	} {
		c, _ := localConfig(t, k.local, k.stop, k.sync)
		n := c.Length(f)
		if n.Iterations != k.iterations || n.Exchanges != k.exchanges || n.Steps != k.steps || n.Pushes != k.pushes ||
			n.Varies != k.varies || n.PerStep != 64 {
			t.Errorf("local: {%s}, stop: {%s}: %+v", k.local, k.stop, n)
		}
		if k.text != "" && n.StepsText() != k.text {
			t.Errorf("local: {%s}, stop: {%s}: %q, want %q", k.local, k.stop, n.StepsText(), k.text)
		}
	}
}

// An epoch of a shard's scheme is an epoch of samples: it has fewer exchanges where these are of several steps, and
// where fragments take turns.
func TestEpochsOfSchemesWithStepsOfTheirOwn(t *testing.T) {
	const sync = "schemes: [{scheme: bsp, until: {epochs: 2}}, {scheme: asp}]"
	for local, want := range map[string]int64{"policy: none": 30, "policy: averaging, steps: 5": 6,
		"policy: streaming_diloco, steps: 10, fragments: 2": 3} {
		c, _ := localConfig(t, local, "epochs: 4", sync)
		if phases, err := c.PhasesOf(0, 4, 960); err != nil || phases[0].Until != want {
			t.Errorf("local: {%s}: %+v, %v; want the change at exchange %d", local, phases, err, want)
		}
	}
}

// With the ranks known, what counts steps is compared with steps and what counts exchanges with exchanges, and
// workers with a spring each do not overshoot.
func TestIdleWithStepsOfTheirOwn(t *testing.T) {
	for _, k := range []struct{ local, sync, want string }{
		{"policy: averaging, steps: 20", "scheme: bsp",
			"train.schedule.every: 60 steps to the first drop, but the run has 60 steps (3840 samples, 64 in each)"},
		{"policy: averaging, steps: 20", "scheme: ssp, staleness: 4",
			"sync[0].staleness: 4 is not below the run's 3 iterations (3840 samples, 1280 in each)"},
		{"policy: streaming_diloco, steps: 40, fragments: 2", "scheme: ssp, staleness: 2",
			"sync[0].staleness: 2 is not below the run's 2 exchanges of each shard, in 3 iterations (3840 samples, 1280 in each)"},
		{"policy: diloco, steps: 100", "scheme: bsp",
			"local.steps: 100 steps between two exchanges, but the run has 60 steps (3840 samples, 64 in each): workers " +
				"exchange what they learn once, at the end; set it to a fraction of 60"},
		{"policy: streaming_diloco, steps: 64, fragments: 2", "scheme: bsp",
			"local.steps: 64 steps between two exchanges, but the run has 60 steps"},
		{"policy: averaging, steps: 60", "scheme: bsp", ""},
		{"policy: post_local", "scheme: bsp", "local.switch: every step is an exchange up to step 100, but the run has " +
			"60 steps (3840 samples, 64 in each); set it below 60"},
		{"policy: post_local, switch: 59", "scheme: bsp", ""},
		{"policy: averaging, period: {name: adacomm, interval: 60}", "scheme: bsp",
			"local.period.interval: the period changes after 60 exchanges, but the run has at most 60 iterations (3840 " +
				"samples, 64 or more in each): it never does"},
		{"policy: averaging, period: {name: adacomm, interval: 59}", "scheme: bsp", ""},
		{"policy: averaging, steps: 9, period: {name: selsync, warm: 60}", "scheme: bsp",
			"local.period.warm: each of the first 60 steps is an exchange, but the run has 60 steps (3840 samples, 64 in " +
				"each): workers never vote; set it below 60"},
		{"policy: averaging, steps: 9, period: {name: selsync, warm: 59}", "scheme: bsp", ""},
		{"policy: easgd, pull: 0.25", "scheme: bsp", ""},
		{"policy: easgd, pull: 0.3", "scheme: bsp",
			"local.pull: 0.3: 4 workers move the servers' parameters 1.2 of the way to their mean, and so past it; set it to 0.225"},
	} {
		c, o := localConfig(t, k.local, "epochs: 4", k.sync)
		text := written(t, idle.More(c, o, settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 960, Lead: 1}))
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(text, k.want) || k.want == "" && strings.Contains(text, "local.") {
			t.Errorf("local: {%s}, %s: %q, want %q", k.local, k.sync, text, k.want)
		}
	}
	// A step of all workers has more samples than there are rows, but not that of an exchange alone.
	for rows, want := range map[int]string{60: "train.batch_per_worker: 64 samples of 4 workers in a step, but the " +
		"training set has 60 rows: a step uses some of them more than once; set it to 15 or less", 64: ""} {
		c, o := localConfig(t, "policy: averaging, steps: 20", "epochs: 400", "scheme: bsp")
		text := strings.Join(strings.Fields(written(t, idle.More(c, o,
			settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: rows, Lead: 1}))), " ")
		if !strings.Contains(text, want) || want == "" && strings.Contains(text, "batch") {
			t.Errorf("%d rows: %q, want %q", rows, text, want)
		}
	}
}

// Under a policy whose pushes count whole, a push is added whole whatever scheme makes it a version; a version of
// several pushes is their sum.
func TestPushesThatCountWholeAreAddedWhole(t *testing.T) {
	for _, k := range []struct {
		local, sync string
		want        float64
	}{
		{"policy: easgd", "scheme: asp", 1}, {"policy: easgd", "scheme: ssp, staleness: 2", 1},
		{"policy: easgd", "scheme: r2sp", 1}, {"policy: easgd", "scheme: asp, weight: 0.5", 0.5},
		{"policy: easgd", "scheme: bsp", 0}, {"policy: easgd", "scheme: softsync, q: 2", 0},
		{"policy: easgd", "scheme: rennala", 0}, {"policy: async_local", "scheme: ssp, staleness: 9", 1},
		{"policy: averaging", "scheme: asp", 0}, {"policy: averaging", "scheme: ssp, staleness: 2", 0}, {"policy: hpsgd", "scheme: asp", 0},
	} {
		c, _ := localConfig(t, k.local, "epochs: 4", k.sync)
		if got := c.Sync[0].Common.Weight; got != k.want {
			t.Errorf("local: {%s}, %s: weight %v, want %v", k.local, k.sync, got, k.want)
		}
	}
}
