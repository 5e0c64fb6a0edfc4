package configs

import (
	"fmt"
	"math"

	"fluentps/ps/optim"
	"fluentps/ps/send"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// What the values mean for the arithmetic, in one place for all drivers that train.

// ModelSpec is the model as workload makes it.
func (c *Config) ModelSpec() workload.ModelSpec {
	return c.Model
}

// Matches lists the globs of the rules, and the servers that each is for, nil where that is all.
func (c *Config) Matches() (globs []string, on [][]int) {
	for _, r := range c.Sync {
		globs, on = append(globs, r.Match), append(on, r.Servers)
	}
	return globs, on
}

// InRounds says whether workers exchange in rounds, as PS-Lite's do: all push, all wait at a barrier, all pull.
func (c *Config) InRounds() bool { return c.Baseline == BaselinePSLite }

// BatchMax is the largest number of samples that one of so many ranks that compute takes in an iteration.
func (t Train) BatchMax(computing int) int {
	if t.BatchGlobal > 0 {
		return (t.BatchGlobal + computing - 1) / computing
	}
	return t.BatchPerWorker
}

// Update is how gradients become parameters: the optimizer and the schedule of its rate.
func (c *Config) Update() (optim.Update, error) {
	o := c.Train.Optimizer
	rule, err := optim.New(o.Spec)
	return optim.Update{Rule: rule, LR: o.LR, Sched: c.Train.Schedule}, err
}

// decay is the weight decay of the parameter of that name: none for those that no_decay names.
func (c *Config) decay(name string) float32 {
	o := c.Train.Optimizer
	if shard.RuleOf(o.NoDecay, name) >= 0 {
		return 0
	}
	return float32(o.WeightDecay)
}

// l1 is the L1 penalty of the parameter of that name: none for those that no_decay names.
func (c *Config) l1(name string) float32 {
	o := c.Train.Optimizer
	if shard.RuleOf(o.NoDecay, name) >= 0 {
		return 0
	}
	return float32(o.L1)
}

// NewStore makes the arithmetic of shard id on its server.
func (c *Config) NewStore(p *shard.Plan, id int32, u optim.Update) *optim.Store {
	sh := &p.Shards[id]
	var runs []optim.Run
	for _, g := range sh.Segs {
		lo := g.At - sh.Lo
		name := p.Params[g.Param].Name
		runs = append(runs, optim.Run{Lo: lo, Hi: lo + g.Hi - g.Lo, Decay: c.decay(name), L1: c.l1(name)})
	}
	return optim.NewStore(sh.Hi-sh.Lo, runs, u, c.way(sh))
}

// way is what a commit makes of the pushes to a shard. Statistics are values, whatever the rule pushes of the rest.
func (c *Config) way(sh *shard.Shard) optim.Way {
	switch {
	case sh.Stat:
		return optim.Average
	case c.Sync[sh.Rule].Update == UpdateAdd:
		return optim.Add
	}
	return optim.Optimize
}

// Optimized says whether the servers keep the optimizer's state of a shard.
func (c *Config) Optimized(sh *shard.Shard) bool { return c.way(sh) == optim.Optimize }

// DeltaRuns are the stretches of the arena that make up a piece which is pushed as a delta; none where gradients are
// pushed, or statistics.
func (c *Config) DeltaRuns(p *shard.Plan, piece *shard.Piece) []optim.Run {
	sh := &p.Shards[piece.Shard]
	if c.Sync[sh.Rule].Push != PushDelta || sh.Stat {
		return nil
	}
	var runs []optim.Run
	for _, g := range sh.Segs {
		q := optim.Run{Lo: max(piece.Lo, g.At), Hi: min(piece.Hi, g.At+g.Hi-g.Lo), Decay: c.decay(p.Params[g.Param].Name)}
		if q.Lo < q.Hi {
			runs = append(runs, q)
		}
	}
	return runs
}

// Samples is the number of samples over all workers between two evaluations; 0: only at the end. rows is the size of
// the training set.
func (e Evaluate) Samples(rows int) int64 {
	switch {
	case e.EverySamples > 0:
		return e.EverySamples
	case e.EveryEpochs > 0:
		return max(1, saturated(math.Round(e.EveryEpochs*float64(rows))))
	}
	return 0
}

// SendPolicy is the send policy of a worker.
func (c *Config) SendPolicy(plan *shard.Plan, worker int) send.Policy {
	push, _ := plan.Largest()
	return c.sendEntry().New(c.sendOptions(push, worker))
}

// ReplyPolicy is that of a server for its replies; nil where they leave whole.
func (c *Config) ReplyPolicy(plan *shard.Plan) send.Policy {
	if e := c.sendEntry(); e.Reply != nil {
		_, reply := plan.Largest()
		return e.Reply(c.sendOptions(reply, 0))
	}
	return nil
}

func (c *Config) sendEntry() send.Entry {
	order := c.Send.Order
	if c.Baseline == BaselinePSLite { // which has none
		order = "fifo"
	}
	e, ok := send.Lookup(order)
	if !ok {
		panic(fmt.Sprintf("configs: send.order %q passed the check and is not built in", c.Send.Order))
	}
	return e
}

func (c *Config) sendOptions(largest int64, node int) send.Options {
	return send.Options{Spec: c.Send, Largest: largest, Seed: c.Seed, Node: uint64(node)}
}
