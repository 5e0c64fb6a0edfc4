package settings_test

import (
	"math"
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/configs/settings"
)

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
		c, _ := configstest.LocalSteps(t, k.local, k.stop, k.sync)
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
		c, _ := configstest.LocalSteps(t, local, "epochs: 4", sync)
		if phases, err := c.PhasesOf(0, 4, 960); err != nil || phases[0].Until != want {
			t.Errorf("local: {%s}: %+v, %v; want the change at exchange %d", local, phases, err, want)
		}
	}
}
