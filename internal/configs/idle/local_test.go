package idle_test

import (
	"strings"
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
)

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
		c, o := configstest.LocalSteps(t, k.local, "epochs: 4", k.sync)
		text := written(t, idle.More(c, o, settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 960, Lead: 1}))
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(text, k.want) || k.want == "" && strings.Contains(text, "local.") {
			t.Errorf("local: {%s}, %s: %q, want %q", k.local, k.sync, text, k.want)
		}
	}
	// A step of all workers has more samples than there are rows, but not that of an exchange alone.
	for rows, want := range map[int]string{60: "train.batch_per_worker: 64 samples of 4 workers in a step, but the " +
		"training set has 60 rows: a step uses some of them more than once; set it to 15 or less", 64: ""} {
		c, o := configstest.LocalSteps(t, "policy: averaging, steps: 20", "epochs: 400", "scheme: bsp")
		text := strings.Join(strings.Fields(written(t, idle.More(c, o,
			settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: rows, Lead: 1}))), " ")
		if !strings.Contains(text, want) || want == "" && strings.Contains(text, "batch") {
			t.Errorf("%d rows: %q, want %q", rows, text, want)
		}
	}
}
