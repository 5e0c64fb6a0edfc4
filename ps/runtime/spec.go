package runtime

import (
	"math"

	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// DataSpec is the data set that the configuration names.
func DataSpec(c *configs.Config) workload.DataSpec {
	d := workload.DataSpec{Set: c.Data.Set, Path: c.Data.Path, Test: c.Data.Test, Scale: c.Data.Scale,
		Rows: c.Data.Rows, TestRows: c.Data.TestRows, Features: c.Data.Features, Classes: c.Data.Classes}
	if c.Data.Set == "generated" {
		d.Seed = c.Seed
	}
	return d
}

// Plan is the shard map of a model for this many servers.
func Plan(c *configs.Config, params []workload.Param, servers int) (*shard.Plan, error) {
	flat := make([]shard.Param, len(params))
	for i, p := range params {
		flat[i] = shard.Param{Name: p.Name, Layer: p.Layer, N: p.N(), Stat: p.Stat}
	}
	globs := make([]string, len(c.Sync))
	for i, r := range c.Sync {
		globs[i] = r.Match
	}
	return shard.Cut(flat, shard.Options{Slice: c.Shards.Slice, MaxBytes: c.Shards.MaxBytes, Servers: servers, Rules: globs})
}

// UpdateOf is how gradients become parameters: the optimizer and the schedule of its rate.
func UpdateOf(c *configs.Config) (optim.Update, error) {
	o, d := c.Train.Optimizer, c.Train.Schedule
	rule, err := optim.New(optim.Spec{Name: o.Name, LR: o.LR, Momentum: o.Momentum, WeightDecay: o.WeightDecay})
	return optim.Update{Rule: rule, LR: o.LR,
		Sched: optim.Schedule{Name: d.Name, Every: d.Every, At: d.At, Factor: d.Factor, WarmUp: d.WarmUp}}, err
}

// DecayOf is the weight decay of the parameter of that name: none for those that no_decay names.
func DecayOf(c *configs.Config, name string) float32 {
	o := c.Train.Optimizer
	if shard.RuleOf(o.NoDecay, name) >= 0 {
		return 0
	}
	return float32(o.WeightDecay)
}

// batchOf is the batch of one worker.
func batchOf(c *configs.Config, workers, worker int) int {
	if c.Train.BatchGlobal > 0 {
		return shard.Share(c.Train.BatchGlobal, workers)[worker]
	}
	return c.Train.BatchPerWorker
}

// budgetOf is what the lead shard counts: samples over all workers, and versions.
func budgetOf(c *configs.Config, rows int) core.Budget {
	return core.Budget{Samples: c.Train.Stop.SampleBudget(rows), Updates: c.Train.Stop.Updates}
}

// snapshotEvery is the number of samples between two evaluations, 0: only at the end.
func snapshotEvery(c *configs.Config, rows int) int64 {
	if c.Evaluate.EveryEpochs <= 0 {
		return 0
	}
	return max(1, int64(math.Round(c.Evaluate.EveryEpochs*float64(rows))))
}
