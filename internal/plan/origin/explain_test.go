package origin

import (
	"strings"
	"testing"

	"fluentps/internal/configs"
)

// A hint names what acts in its configuration: no warm-up is added to one that has it, and a loss that is worth nothing is blamed on
// the learning rate alone only where no other key makes steps large.
func TestHintsNameWhatActsInTheirConfiguration(t *testing.T) {
	base := func(change func(c *configs.Config)) *configs.Config {
		c := &configs.Config{Baseline: configs.BaselineNone, Sync: []configs.Rule{{}}}
		c.Data.Set, c.Train.Optimizer.Name, c.Train.Optimizer.LR, c.Sync[0].Scheme = "csv", "sgd", 0.5, "bsp"
		c.Data.Path, c.Data.Scale = "x.csv", 1
		change(c)
		return c
	}
	for _, c := range []struct {
		change func(c *configs.Config)
		data   float64
		want   string
	}{
		{func(c *configs.Config) {}, 1, "lower train.optimizer.lr (now 0.5), or add train.schedule.warm_up"},
		{func(c *configs.Config) { c.Train.Schedule.WarmUp = 7 }, 1,
			"lower train.optimizer.lr (now 0.5), or raise train.schedule.warm_up (now 7)"},
		{func(c *configs.Config) { c.Train.Optimizer.L1 = 3 }, 1,
			"lower one of train.optimizer.lr (now 0.5) and train.optimizer.l1 (now 3), or add train.schedule.warm_up"},
		{func(c *configs.Config) { c.Train.Optimizer.WeightDecay = 8 }, 1,
			decayHint(base(func(c *configs.Config) { c.Train.Optimizer.WeightDecay = 8 }))},
		{func(c *configs.Config) {
			c.Train.Optimizer.Name, c.Train.Optimizer.Momentum, c.Train.Optimizer.WeightDecay, c.Sync[0].Scheme = "momentum", 0.99, 0.1, "asp"
		}, 1, "lower one of train.optimizer.lr (now 0.5), train.optimizer.weight_decay (now 0.1) and " +
			"train.optimizer.momentum (now 0.99), or add train.schedule.warm_up, or choose a scheme with a smaller delay than asp"},
		// sgd has none
		{func(c *configs.Config) { c.Train.Optimizer.Momentum = 0.99 }, 1, "lower train.optimizer.lr (now 0.5), or add train.schedule.warm_up"},
		{func(c *configs.Config) {}, 1e8, "standardize the columns, as in data.columns: {\"*\": standardize}, or raise " +
			"data.scale (now 1), by which features are divided"},
	} {
		if got := Worse(base(c.change), c.data); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	// Decay of adamw is larger than a small gradient in any run; it explains a step only where it multiplies parameters.
	small := Finding{Decay: 2, Grad: 1, Inner: true}
	for name, want := range map[string]string{"sgd": "train.optimizer.weight_decay (now 0.1)", "adamw": "lower train.optimizer.lr (now 0.5)"} {
		c := base(func(c *configs.Config) { c.Train.Optimizer.Name, c.Train.Optimizer.WeightDecay = name, 0.1 })
		if got := small.stepHint(c); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", name, got, want)
		}
	}
	nan := Finding{Place: Gradient, Server: Nobody, Value: "NaN"}
	got := Explain(&nan, base(func(c *configs.Config) { c.Train.Schedule.WarmUp = 7 }), 1)
	if want := "lower train.optimizer.lr (now 0.5) or raise train.schedule.warm_up (now 7)"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
}
