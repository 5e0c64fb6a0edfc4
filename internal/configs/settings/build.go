package settings

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"fluentps/internal/core/shard"
	"fluentps/internal/disk/durable"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
	"fluentps/ps/workload"
)

// ModelSpec returns the model for package workload.
func (c *Config) ModelSpec() workload.ModelSpec {
	m := c.Model
	if c.Local.AveragesState() {
		m.States = optim.StateNames(c.Train.Optimizer.Name)
	}
	return m
}

// Matches lists the globs of the rules and the servers of each rule; nil stands for all servers.
func (c *Config) Matches() (globs []string, on [][]int) {
	for _, r := range c.Sync {
		globs, on = append(globs, r.Match), append(on, r.Servers)
	}
	return globs, on
}

// InRounds reports whether workers exchange in rounds, as in PS-Lite: all push, all wait at a barrier, all pull.
func (c *Config) InRounds() bool { return c.Baseline == BaselinePSLite }

// Overlaps reports whether gradients leave while backward runs on. A norm over all of them is known when it has ended.
func (c *Config) Overlaps() bool { return c.Send.Overlap && !c.InRounds() && !c.Train.Clip.OfWorkers() }

// Batch returns the samples of one iteration over so many ranks that compute.
func (c *Config) Batch(computing int) int {
	if c.Train.BatchGlobal > 0 {
		return c.Train.BatchGlobal
	}
	return c.Train.BatchPerWorker * computing
}

// BatchMax returns the most samples that one rank takes in an iteration if that many ranks compute.
func (c *Config) BatchMax(computing int) int {
	equal := c.Train.BatchPerWorker
	if c.Train.BatchGlobal > 0 {
		equal = (c.Train.BatchGlobal + computing - 1) / computing
	}
	switch {
	case c.Work.Policy == work.Fixed && len(c.Work.Shares) > 0:
		return slices.Max(c.Batches(computing))
	case !c.DealsBatches():
		return equal
	}
	return c.dealtMax(computing) + c.epochRow()
}

// dealtMax is the most samples that a plan gives one of so many ranks.
func (c *Config) dealtMax(computing int) int {
	most := 4 * ((c.Batch(computing) + computing - 1) / computing)
	if c.Work.BatchMax > 0 {
		most = c.Work.BatchMax - c.epochRow()
	}
	return min(most, c.Batch(computing)-computing+1)
}

// epochRow is 1 if a rank may have a row more at the end of an epoch, else 0.
func (c *Config) epochRow() int {
	if p, _ := work.All.Lookup(c.Work.Policy); p.Epochs {
		return 1
	}
	return 0
}

// Batches returns the samples of each rank that computes in the first iteration. CheckWork has passed.
func (c *Config) Batches(computing int) []int {
	switch {
	case len(c.Work.Shares) > 0:
		return work.Split(c.Batch(computing), c.Work.Shares, 1, c.Batch(computing))
	case c.Train.BatchGlobal > 0:
		return shard.Share(c.Train.BatchGlobal, computing)
	}
	return slices.Repeat([]int{c.Train.BatchPerWorker}, computing)
}

// CheckWork fails if the work of an iteration, or so many rows, cannot be dealt to so many ranks that compute.
func (c *Config) CheckWork(computing, rows int) error {
	path, err := c.Undealt(computing, rows)
	if err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// Undealt returns why work cannot be dealt, and the key with the value that is at fault.
func (c *Config) Undealt(computing, rows int) (path string, err error) {
	n, per := c.Batch(computing), c.Work.BatchMax-c.epochRow()
	switch {
	case n < computing:
		return "train.batch_global", fmt.Errorf("is %d, but there are %d workers and each needs at least 1 sample; set "+
			"it to %d or more, or start fewer ranks", n, computing, computing)
	case len(c.Work.Shares) > 0 && len(c.Work.Shares) != computing:
		return "work.shares",
			fmt.Errorf("has %d values, but %d workers compute; give one value per worker, or leave it out", len(c.Work.Shares), computing)
	case c.Work.Policy == work.Partial && c.Work.Required > computing:
		return "work.required", fmt.Errorf("is %d, but there are %d partitions, one for each worker; set it to %d or "+
			"less, or to 0 for all", c.Work.Required, computing, computing)
	case c.Work.Policy == work.Partial && c.Work.Load > computing:
		return "work.load", fmt.Errorf("is %d, but there are %d workers, and each computes a partition once; set it to "+
			"%d or less", c.Work.Load, computing, computing)
	case c.DealsBatches() && c.Work.BatchMax > 0 && per*computing < n:
		return "work.batch_max",
			fmt.Errorf("is %d, but %d workers share %d samples an iteration; set it to %d or more", c.Work.BatchMax, computing,
				n, (n+computing-1)/computing+c.epochRow())
	case c.DealsBatches() && rows < computing:
		return "work.policy", fmt.Errorf("%s deals %d rows to %d workers, and each needs at least 1; take more rows, or "+
			"start fewer ranks", c.Work.Policy, rows, computing)
	}
	if _, err := c.Code(computing); err != nil {
		return "work.code.stragglers", fmt.Errorf("is %d: %w", c.Work.Code.Stragglers, err)
	}
	if k := &c.Work.Code; c.Coded() && k.Alpha > 0 {
		for w, batch := range c.Batches(computing) {
			if code.Private(batch, k.Stragglers, k.Alpha) < 1 {
				return "work.code.alpha", fmt.Errorf("is %g: of the %d samples of worker %d a share of (%d + 1) / (%d + %g) is "+
					"private, less than 1 sample; set a smaller alpha or a larger batch, or alpha: 0", k.Alpha, batch, w,
					k.Stragglers, k.Stragglers, k.Alpha)
			}
		}
	}
	return "", nil
}

// DealsBatches reports whether the batches of ranks change while the run goes on.
func (c *Config) DealsBatches() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Deals()
}

// ComputesInSteps reports whether a policy moves or cuts the samples of an iteration while they are computed.
func (c *Config) ComputesInSteps() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Steps
}

// Coded reports whether a push is a sum of the gradients of several workers' batches, which the servers decode.
func (c *Config) Coded() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Coded
}

// Code is the code of so many workers; nil if pushes are not coded.
func (c *Config) Code(workers int) (*code.Code, error) {
	if !c.Coded() {
		return nil, nil
	}
	k := &c.Work.Code
	return code.New(code.Spec{Kind: code.Kind(k.Kind), Workers: workers, Stragglers: k.Stragglers, Draws: k.Draws,
		ConditionMax: k.ConditionMax, Seed: c.Seed})
}

// WorkText names how batches are dealt; "" if all are equal.
func (c *Config) WorkText() string {
	switch {
	case c.Work.Policy != work.Fixed:
		return c.Work.Policy
	case len(c.Work.Shares) > 0:
		return "shares"
	}
	return ""
}

// WorkEnv is the run for a policy of work, with so many ranks that compute.
func (c *Config) WorkEnv(computing, rows int) work.Env {
	return work.Env{Workers: computing, Batch: c.Batch(computing), Max: c.dealtMax(computing), Rows: rows}
}

// NewDealer makes the coordinator that deals the batches of so many ranks that compute; nil if they never change.
// from is what the run resumes from, or nil, and start the iteration at which a policy that cannot resume from it
// begins. CheckWork has passed.
func (c *Config) NewDealer(computing, rows int, from *work.Saved, start int64) (*work.Coordinator, error) {
	return work.NewCoordinator(c.Work, c.WorkEnv(computing, rows), from, start)
}

// ReadReplay reads the record of a run whose batches are to come again; nil if none are.
func (c *Config) ReadReplay(computing int) (work.Record, error) {
	path := c.Work.Replay
	if path == "" {
		return nil, nil
	}
	text, err := durable.ReadFile(path, work.RecordBytesMax)
	if err != nil {
		return nil, fmt.Errorf("work.replay: %w; name the %s of a run folder, or leave replay out", err, work.RecordName)
	}
	if bytes.Contains(text, []byte("\r\n")) { // the header would be said to differ, and nobody would see why
		return nil, fmt.Errorf("work.replay: %s has lines that end in CR LF, and a run writes LF alone; take the file as the run wrote it", path)
	}
	record, err := work.ParseRecord(text, computing)
	if err != nil {
		return nil, fmt.Errorf("work.replay: %s: %w", path, err)
	}
	return record, nil
}

// Update returns the update rule: the optimizer and the schedule of its rate.
func (c *Config) Update() (optim.Update, error) {
	o := c.Train.Optimizer
	return optim.NewUpdate(o.Spec, c.Train.Schedule)
}

// ServerUpdate returns how the servers apply pushes: train.optimizer, or local.outer where workers take steps of their own. computing is
// the number of ranks that compute.
func (c *Config) ServerUpdate(computing int) (optim.Update, error) {
	inner, err := c.Update()
	if err != nil || !c.Local.IsSet() {
		return inner, err
	}
	o := c.Local.Outer
	outer := optim.Outer{Name: c.ServerRule(), LR: cmp.Or(o.LR, 1), Momentum: o.Momentum, Every: o.Every,
		Between: o.Between, Inner: inner.Rate}
	if outer.Every == 0 {
		outer.Every = int64(max(1, computing))
	}
	return optim.NewOuter(outer)
}

// ServerRule names the rule with which the servers apply pushes.
func (c *Config) ServerRule() string {
	if !c.Local.IsSet() {
		return c.Train.Optimizer.Name
	}
	e, _ := local.All.Lookup(c.Local.Policy)
	return cmp.Or(e.Outer, c.Local.Outer.Name, "sgd")
}

// decay returns the weight decay of a parameter: 0 if no_decay names it.
func (c *Config) decay(q *shard.Param) float32 {
	o := c.Train.Optimizer
	switch {
	case shard.RuleOf(o.NoDecay, q.Name) >= 0:
		return 0
	case o.Name == "muon" && !c.TakesWhole(q):
		return float32(o.Others.WeightDecay)
	}
	return float32(o.WeightDecay)
}

// StepsWhole says whether the server of a shard needs all of a parameter for a step of it.
func (c *Config) StepsWhole(sh *shard.Shard, q *shard.Param) bool {
	return c.way(sh) == optim.Optimize && c.TakesWhole(q)
}

// TakesWhole says whether who takes the step of a parameter needs all of it: a matrix, under muon.
func (c *Config) TakesWhole(q *shard.Param) bool {
	o := c.Train.Optimizer
	return o.Name == "muon" && q.Rows > 0 && !q.Stat && shard.RuleOf(o.Others.Match, q.Name) < 0
}

// l1 returns the L1 penalty of a parameter: 0 if no_decay names it.
func (c *Config) l1(name string) float32 {
	o := c.Train.Optimizer
	if shard.RuleOf(o.NoDecay, name) >= 0 {
		return 0
	}
	return float32(o.L1)
}

// NewStore makes the store of shard id on its server.
func (c *Config) NewStore(p *shard.Plan, id int32, u optim.Update) *optim.Store {
	sh := &p.Shards[id]
	var runs []optim.Run
	for _, g := range sh.Segs {
		lo := g.At - sh.Lo
		param := &p.Params[g.Param]
		q := optim.Run{Lo: lo, Hi: lo + g.Hi - g.Lo, Decay: c.decay(param), L1: c.l1(param.Name)}
		if c.TakesWhole(param) {
			q.Rows = param.Rows
		}
		runs = append(runs, q)
	}
	return optim.NewStore(sh.Hi-sh.Lo, runs, u, c.way(sh))
}

// way returns how a commit applies the pushes to a shard. Pushes of statistics are always values, whatever the rule says.
func (c *Config) way(sh *shard.Shard) optim.Way {
	switch {
	case sh.Stat:
		return optim.Average
	case c.Local.IsSet():
		return optim.Follow
	case c.Sync[sh.Rule].Update == UpdateAdd:
		return optim.Add
	}
	return optim.Optimize
}

// Optimized reports whether the servers keep optimizer state for a shard.
func (c *Config) Optimized(sh *shard.Shard) bool {
	w := c.way(sh)
	return w == optim.Optimize || w == optim.Follow
}

// DeltaRuns returns the runs of a piece in the arena if workers push it as a delta. It returns none for gradients and statistics.
func (c *Config) DeltaRuns(p *shard.Plan, piece *shard.Piece) []optim.Run {
	if !c.PushesDelta(p, piece) {
		return nil
	}
	return c.trainedRuns(p, piece)
}

// PushesDelta says whether workers push a piece as a delta.
func (c *Config) PushesDelta(p *shard.Plan, piece *shard.Piece) bool {
	sh := &p.Shards[piece.Shard]
	return c.Sync[sh.Rule].Push == PushDelta && !sh.Stat && !c.Local.IsSet()
}

// trainedRuns returns the runs of a piece in the arena. A matrix whose step needs all of it is a run of the piece that it begins in: a
// worker has the gradients of all its pieces at once, since they are of one layer.
func (c *Config) trainedRuns(p *shard.Plan, piece *shard.Piece) []optim.Run {
	sh := &p.Shards[piece.Shard]
	var runs []optim.Run
	for _, g := range sh.Segs {
		if param, at := &p.Params[g.Param], p.At[g.Param]; c.TakesWhole(param) {
			if piece.Lo <= at && at < piece.Hi {
				runs = append(runs, optim.Run{Lo: at, Hi: at + param.N, Decay: c.decay(param), Rows: param.Rows})
			}
			continue
		}
		q := optim.Run{Lo: max(piece.Lo, g.At), Hi: min(piece.Hi, g.At+g.Hi-g.Lo), Decay: c.decay(&p.Params[g.Param]),
			L1: c.l1(p.Params[g.Param].Name)}
		if q.Lo < q.Hi {
			runs = append(runs, q)
		}
	}
	return runs
}

// Samples returns the samples over all workers between two evaluations, or 0 for one at the end only. rows is the size of the training set.
func (e Evaluate) Samples(rows int) int64 {
	switch {
	case e.EverySamples > 0:
		return e.EverySamples
	case e.EveryEpochs > 0:
		return max(1, saturated(math.Round(e.EveryEpochs*float64(rows))))
	}
	return 0
}

// SendPolicy returns the send policy of a worker.
func (c *Config) SendPolicy(plan *shard.Plan, worker int) send.Policy {
	push, _ := plan.Largest()
	o := c.sendOptions(push, worker)
	o.Windows = plan.Windows
	return c.sendEntry().New(o)
}

// ReplyPolicy returns the policy of a server for its replies to so many workers; nil if each reply leaves whole.
func (c *Config) ReplyPolicy(plan *shard.Plan, server int32, workers int) send.Policy {
	_, reply := plan.Largest()
	o := c.sendOptions(reply, 0)
	if plan.Windows != nil {
		o.Windows = slices.Repeat(plan.Windows[server:server+1], workers)
	}
	return c.sendEntry().Reply(o)
}

func (c *Config) sendEntry() send.Entry {
	order := c.Send.Order
	if c.Baseline == BaselinePSLite { // PS-Lite has no send policy
		order = "fifo"
	}
	e, ok := send.All.Lookup(order)
	if !ok {
		panic(fmt.Sprintf("configs: send.order %q passed the check and is not built in", c.Send.Order))
	}
	return e
}

func (c *Config) sendOptions(largest int64, node int) send.Options {
	o := send.Options{Spec: c.Send, Largest: largest, Seed: c.Seed, Node: uint64(node)}
	if c.Baseline == BaselinePSLite {
		o.Window = 0 // PS-Lite has no window either
	}
	return o
}
