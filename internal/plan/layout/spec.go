// Package layout computes what follows from a configuration, the shapes of its data and its ranks alone: which ranks serve
// and work, how the parameters are cut, the way of every piece between a worker and its server, the memory of each rank and
// host, and the text of plan. It is pure: the runtime obeys it, and the tools that plan a run ask it the same questions.
package layout

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// DataSpec is the data set that the configuration names.
func DataSpec(c *configs.Config) workload.DataSpec { return c.Data.Spec(c.Seed, c.Cluster.MemoryMax) }

// Judge says how the evaluations of a run are judged.
func Judge(c *configs.Config, set *dataset.Set) metrics.Judge {
	j := metrics.Judge{Measure: c.Measure(), Rows: int64(set.Test.Rows()), Deviation: cmp.Or(set.Targets.Deviation, 1)}
	if j.Measure == metrics.Misses && j.Rows > 0 {
		j.Spread = set.TestSpread()
	}
	return j
}

// Plan cuts a model into shards for this many servers, whose hosts have this link. It refuses a model with too many
// pieces before it lists them.
func Plan(c *configs.Config, params []workload.Param, servers int, link Link) (*shard.Plan, error) {
	if err := checkPieces(c, params); err != nil {
		return nil, err
	}
	flat := make([]shard.Param, len(params))
	for i, p := range params {
		flat[i] = shard.Param{Name: p.Name, Layer: p.Layer, N: p.N(), Row: p.Row, Stat: p.Stat, Rows: matrixRows(p.Shape)}
	}
	o := shard.Options{Slice: c.Shards.Slice, MaxBytes: c.Shards.MaxBytes, Servers: servers}
	o.Rules, o.On = c.Matches()
	if c.Cluster.Placement == "mixed" && !Reduces(c) {
		o.Shares = shard.MixedShares(c.Cluster.Servers, servers-c.Cluster.Servers)
	}
	switch {
	case Reduces(c):
		o.Servers, o.Slice, o.MaxBytes = 1, "even", comm.MessageMax // the whole arena is one shard
		if c.Train.Optimizer.Name == "lars" {
			o.Slice = "layer" // the step is taken shard by shard
		}
	case c.InRounds():
		o.Keys, o.MaxBytes = c.BaselineKeys, messageBytes(c, len(params))
	}
	link.cut(c, &o)
	if codec := c.PushCodec(); codec != nil {
		o.PushBytes = codec.EncodedMax
	}
	if !c.InRounds() && !Reduces(c) {
		o.RowBytes = func(width, cut, elements int) int { return payload.NewRows(width, cut).EncodedMax(elements) }
	}
	if codec := c.PullCodec(); codec != nil {
		o.ReplyBytes = codec.EncodedMax
	}
	p, err := shard.Cut(flat, o)
	if err != nil {
		return nil, err
	}
	if push, _ := p.Largest(); push > comm.MessageMax {
		return nil, fmt.Errorf("payload: a piece of shards.max_bytes %s may take %s as %s, and a message has at most %s; "+
			"set shards.max_bytes to half of it, or lower payload.ratio",
			metrics.Size(c.Shards.MaxBytes), metrics.Size(push), c.Payload.PushText(), metrics.Size(comm.MessageMax))
	}
	if _, err := Fragments(c, p); err != nil {
		return nil, err
	}
	if err := checkMatrices(c, params, p); err != nil {
		return nil, err
	}
	p.Windows = link.windows(c, p)
	return p, nil
}

// CopyOf says how a worker keeps its copy of the shards of a rule.
func CopyOf(c *configs.Config, rule, workers int) inturn.Copy {
	r := &c.Sync[rule]
	return inturn.CopyOf(r.Scheme, r.Common, r.Params, workers)
}

// BatchOf is the batch size of one of the ranks that compute, at first.
func BatchOf(c *configs.Config, workers, worker int) int {
	return c.Batches(workers)[worker]
}

// BatchRoom is the largest batch that one of the ranks that compute may get, or may compute for another.
func BatchRoom(c *configs.Config, workers, worker int) int {
	switch {
	case c.DealsBatches():
		return c.BatchMax(workers)
	case c.ComputesInSteps():
		return slices.Max(c.Batches(workers))
	}
	return BatchOf(c, workers, worker)
}

// InitialRows are the rows of one of the ranks that compute, in the first iterations.
func InitialRows(c *configs.Config, workers, worker int, set *dataset.Set) ([]int32, error) {
	rows := set.Train.Rows()
	if c.Data.Skew != (dataset.Skew{}) {
		shares, err := set.Shares(c.Data.Skew, workers, c.Seed)
		if err != nil {
			return nil, err
		}
		return shares[worker], nil
	}
	if len(c.Work.Shares) == 0 {
		return dataset.Partition(c.Data.Partition, rows, workers, worker, c.Seed)
	}
	p := work.Plan{Batches: c.Batches(workers)}
	return dataset.Deal(p.Rows(rows), worker, c.Seed, 0), nil
}

// RowsOf is what an assignment deals to one of the ranks that compute, out of so many rows.
func RowsOf(c *configs.Config, a *work.Assignment, worker, rows int) dataset.Assignment {
	p := a.Plan()
	of := dataset.Assignment{Number: a.Number, From: a.From, Batch: a.Batches[worker],
		Rows: dataset.Deal(p.Rows(rows), worker, c.Seed, a.Number)}
	if a.Epoch {
		of.Pass = p.Iterations
	}
	return of
}

// BudgetOf is the budget that the lead shard counts: samples over all workers, and versions.
func BudgetOf(c *configs.Config, rows int, roles shard.Roles) servernode.Budget {
	team := 0
	for w := range roles.Workers {
		team = max(team, len(roles.Team(w)))
	}
	return servernode.Budget{Samples: c.Train.Stop.SampleBudget(rows), Updates: c.Train.Stop.Updates,
		PerPush: int64(team*c.BatchMax(roles.Computes())) * max(1, c.Local.Steps)}
}

// Fragments deals the shards to the fragments that are exchanged in turn; nil: all shards are exchanged together.
func Fragments(c *configs.Config, p *shard.Plan) (*shard.Fragments, error) {
	if e, _ := local.All.Lookup(c.Local.Policy); !e.Fragments {
		return nil, nil
	}
	return shard.NewFragments(p, c.Local.Fragments)
}

// StepsOf is what the worker's own steps are made from, without its memory.
func StepsOf(c *configs.Config, p *shard.Plan, roles shard.Roles, rows int) (o steps.Options, err error) {
	env, err := c.LocalEnv(len(roles.Workers))
	if err != nil {
		return o, err
	}
	update, err := c.Update()
	if err != nil {
		return o, err
	}
	fragments, err := Fragments(c, p)
	if err != nil {
		return o, err
	}
	o = steps.Options{Spec: c.Local, Env: env, Plan: p, Update: update, Batch: int64(c.Batch(roles.Computes())),
		Budget: c.Train.Stop.SampleBudget(rows), Fragments: fragments, Clip: c.Train.Clip,
		Runs: func(piece *shard.Piece) []optim.Run { return c.InnerRuns(p, piece) }}
	o.States, o.IsState = statesOf(c, p)
	if Teams(c) { // a step of a team is host_steps steps of each rank
		n, spec := c.Local.HostSteps, &o.Spec
		o.Batch *= n
		o.Env.Rate, o.Env.WarmUp = func(step float64) float64 { return env.Rate(step * float64(n)) }, (env.WarmUp+n-1)/n
		spec.Steps, spec.Switch, spec.Delay = max(min(spec.Steps, 1), spec.Steps/n), max(1, spec.Switch/n), spec.Delay/n
	}
	return o, nil
}

// statesOf finds the states of the optimizer that are averaged, beside the parameters; nil: none are.
func statesOf(c *configs.Config, p *shard.Plan) (states func(at int) []int, isState func(param int) bool) {
	if !c.Local.AveragesState() {
		return nil, nil
	}
	index := map[string]int{}
	for k := range p.Params {
		index[p.Params[k].Name] = k
	}
	is, at := make([]bool, len(p.Params)), make([][]int, len(p.Params))
	for k := range p.Params {
		for _, name := range optim.StateNames(c.Train.Optimizer.Name) {
			if s, ok := index[workload.StateName(p.Params[k].Name, name)]; ok {
				is[s], at[k] = true, append(at[k], p.At[s])
			}
		}
	}
	starts := make([]int, len(at))
	return func(e int) []int {
		k := sort.Search(len(p.At), func(k int) bool { return p.At[k] > e }) - 1
		starts = append(starts[:0], at[k]...)
		for i := range starts {
			starts[i] += e - p.At[k]
		}
		return starts
	}, func(param int) bool { return is[param] }
}

// HostStepsOf is what the steps of one rank of a team between two averagings within its host are made from, without its memory.
func HostStepsOf(c *configs.Config, p *shard.Plan) (o steps.Options, err error) {
	update, err := c.Update()
	if err != nil {
		return o, err
	}
	return steps.Options{Spec: local.Averages(c.Local.HostSteps), Env: local.Env{Workers: 1, Rate: update.Rate}, Plan: p,
		Update: update, Batch: 1, Clip: c.Train.Clip,
		Runs: func(piece *shard.Piece) []optim.Run { return c.InnerRuns(p, piece) }}, nil
}

// StepVectors is how many vectors of the arena's length a worker has for steps of its own, and how many of them a checkpoint holds.
func StepVectors(c *configs.Config) (all, saved int64) {
	if !c.Local.IsSet() {
		return 0, 0
	}
	u, err := c.Update()
	if err != nil {
		panic("layout: the optimizer of a checked configuration: " + err.Error())
	}
	n, k := steps.VectorCount(&c.Local, u)
	return int64(n), int64(k)
}
