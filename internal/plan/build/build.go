// Package build makes the nodes and the stores of a run from its configuration. The runtime, the simulator and the
// tests all use it, so they drive the same nodes.
package build

import (
	"fmt"
	"slices"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/tasks"
	"fluentps/internal/core/workernode"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// Run is what nodes are made from.
type Run struct {
	Config *configs.Config
	Plan   *shard.Plan
	Roles  shard.Roles
	Hosts  []string // of every rank; nil: unknown
	Rows   int      // of the training set
	Axes   Axes
	// Initial gives the parameters their first values; nil: these follow from the seed.
	Initial workload.Initial
}

// Axes are policies of the work axis and the local axis that are not those of the configuration. The zero value takes
// the configuration's.
type Axes struct {
	Work  func(worker int) core.Work         // the policy that says which samples a worker computes
	Parts int                                // the largest number of parts of an iteration; below 2: an iteration is one push of its worker
	Ahead *core.Ahead                        // workers pull ahead, and may push for others; nil: they do not
	Due   func(shard int32, iter int64) bool // says in which iterations a shard is exchanged; nil: in all
}

// AxesInUse are the policies that the nodes get: those of the configuration, where no others are given.
func (b *Run) AxesInUse() Axes {
	a := b.Axes
	if a.Work != nil || !b.Config.ComputesInSteps() {
		return a
	}
	batches := b.Config.Batches(len(b.Roles.Workers))
	a.Parts = tasks.Parts(b.Config.Work, batches)
	if owners := tasks.Owners(b.Config.Work, len(batches)); owners != nil {
		a.Ahead = &core.Ahead{Owners: owners}
	} else if b.Config.Coded() {
		a.Ahead = &core.Ahead{Apart: b.Config.Work.Code.Alpha > 0}
	}
	skips := false
	for rule := range b.Config.Sync {
		skips = skips || b.maySkip(rule)
	}
	a.Work = func(worker int) core.Work {
		return tasks.New(b.Config.Work,
			tasks.Env{Me: int32(worker), Batches: batches, Skips: skips, Threads: b.Config.Device.Threads, Hosts: b.hostsOfWorkers()})
	}
	return a
}

// hostsOfWorkers numbers the host of each worker; nil: unknown.
func (b *Run) hostsOfWorkers() (hosts []int32) {
	if b.Hosts == nil {
		return nil
	}
	for _, rank := range b.Roles.Workers {
		hosts = append(hosts, int32(slices.Index(b.Hosts, b.Hosts[rank])))
	}
	return hosts
}

// HasTasks says whether policies say which samples the workers compute.
func (b *Run) HasTasks() bool { return b.AxesInUse().Work != nil }

// Start is the state in which nodes resume, from a checkpoint or after a pause. nil: a new run.
type Start struct {
	Clocks []int64                    // per worker: the iteration that it computes next
	Shards map[int32]servernode.Saved // the shards of one server
}

// Clock is the first iteration that a worker computes.
func (s *Start) Clock(worker int) int64 {
	if s == nil {
		return 0
	}
	return s.Clocks[worker]
}

// Scheme names the scheme of a rule; if the rule has several in turn, the first.
func (b *Run) Scheme(rule int) string { return b.Config.Sync[rule].Scheme }

// CopyOf says how workers keep copies of the shards of a rule.
func (b *Run) CopyOf(rule int) inturn.Copy {
	return layout.CopyOf(b.Config, rule, len(b.Roles.Workers))
}

// Phases are the schemes of a rule in turn, with the iterations at which they end.
func (b *Run) Phases(rule int) ([]scheme.Phase, error) {
	return b.Config.PhasesOf(rule, b.Roles.Computes(), b.Rows)
}

// Schemes makes the schemes of a server's shards. Shards that take part in one rotation share an instance.
func (b *Run) Schemes(me int32, from *Start) (map[int32]inturn.ShardScheme, error) {
	code, err := b.Decoder() // one for all shards: the search for a code takes time, and one node decodes at a time
	if err != nil {
		return nil, err
	}
	schemes := map[int32]inturn.ShardScheme{}
	for _, id := range b.Plan.OfServer(me) {
		rule := b.Plan.Shards[id].Rule
		env := scheme.Env{Workers: len(b.Roles.Workers), Shards: inturn.Together(b.Plan, id, b.Scheme), Server: int(me),
			Servers: len(b.Roles.Servers),
			Follows: servernode.LeadShard(b.Plan, id) != id, Seed: b.Config.Seed, Rule: rule}
		if b.Config.WeighsSamples() {
			env.Samples = float64(b.Config.Batch(b.Roles.Computes())) / float64(env.Workers)
		}
		env.Code = code
		phases, err := b.Phases(rule)
		if err != nil {
			return nil, err
		}
		from.fillEnv(&env, id, phases, b.locally())
		if ss, made := schemes[env.Shards[0]]; made {
			schemes[id] = ss
		} else if schemes[id], err = inturn.NewShardSchemes(phases, env, from.changes(id)); err != nil {
			return nil, fmt.Errorf("sync: match %q: %w", b.Config.Sync[rule].Match, err)
		}
	}
	return schemes, nil
}

// fillEnv tells a scheme where it resumes.
func (s *Start) fillEnv(env *scheme.Env, id int32, phases []scheme.Phase, l *servernode.Locally) {
	if s == nil {
		return
	}
	node := s.Shards[id]
	env.Clocks, env.Start = l.ClocksOf(id, s.Clocks), node.Version
	changes := s.changes(id)
	k, _ := inturn.PhaseAt(phases, env.Clocks, changes)
	if len(node.Memory) > 0 && phases[k].Until == node.Until && changes == node.Changes { // else: another scheme's memory
		env.Memory = node.Memory
	}
}

// changes is how often a shard had changed its scheme at announced clocks.
func (s *Start) changes(id int32) int64 {
	if s == nil {
		return 0
	}
	node := s.Shards[id]
	return node.ChangesAt(s.Clocks)
}

// Server is what a server node is made from, beside the configuration.
type Server struct {
	Schemes map[int32]inturn.ShardScheme
	Shares  func(shard, worker int32) bool // server and worker share memory for that shard; nil: none do
	Saves   bool                           // versions are saved while training runs
	// SnapshotEvery is the number of samples between two versions that are kept for evaluation. 0: none is kept.
	SnapshotEvery int64
	Decided       servernode.Decided // may be nil
}

// Server makes the node of a server.
func (b *Run) Server(me int32, o Server) *servernode.Server {
	c, axes := b.Config, b.AxesInUse()
	return servernode.New(servernode.Config{Me: me, Plan: b.Plan, Workers: len(b.Roles.Workers), Schemes: o.Schemes,
		Budget:        layout.BudgetOf(c, b.Rows, b.Roles),
		SnapshotEvery: o.SnapshotEvery, Decided: o.Decided, Send: c.ReplyPolicy(b.Plan, me, len(b.Roles.Workers)),
		Acks: c.InRounds(), Near: o.Shares, Saves: o.Saves, Together: layout.PausesInStep(c, b.Plan), Parts: axes.Parts,
		Ahead: axes.Ahead, Locally: b.locally(), Awaits: c.Awaits(), SkipsAhead: c.SkipsAhead(),
		Clip: meanClip(c)})
}

// meanClip is how servers clip means. In an all-reduce no server does.
func meanClip(c *configs.Config) optim.Clip {
	if layout.Reduces(c) {
		return optim.Clip{}
	}
	return c.Train.Clip
}

// Worker makes the node of a worker whose first iteration is next. shares says for which shards it shares memory with
// the server; nil: for none.
func (b *Run) Worker(me int, next int64, shares func(shard int32) bool) *workernode.Worker {
	if b.Axes.Due != nil && next > 0 {
		panic("build: a worker resumes, and exchange clocks of shards cannot be restored yet")
	}
	return b.prepare(workernode.New(int32(me), b.Plan, b.Config.SendPolicy(b.Plan, me), next), me, next, shares)
}

// fragments deals the shards to the fragments that are exchanged in turn; nil: all shards are exchanged together. That the shards suffice
// was checked with the memory.
func (b *Run) fragments() *shard.Fragments {
	f, err := layout.Fragments(b.Config, b.Plan)
	if err != nil {
		panic("build: " + err.Error())
	}
	return f
}

// locally says how servers count the pushes of workers that take steps of their own; nil: there are none.
func (b *Run) locally() *servernode.Locally {
	if !b.Config.Local.IsSet() {
		return nil
	}
	e, _ := local.All.Lookup(b.Config.Local.Policy)
	l := &servernode.Locally{Weigh: e.Weigh}
	if f := b.fragments(); f != nil {
		l.Clock = f.Clock
	}
	return l
}

// Joining makes the node of a worker that comes back for another life. It knows nothing but its clock.
func (b *Run) Joining(me int, life, clock int64) *workernode.Worker {
	if b.Axes.Due != nil {
		panic("build: a worker comes back, and exchange clocks of shards cannot be restored yet")
	}
	return b.prepare(workernode.NewJoining(int32(me), b.Plan, b.Config.SendPolicy(b.Plan, me), life, clock), me, clock, nil)
}

// prepare tells a worker's node the settings that it must have before its first input.
func (b *Run) prepare(node *workernode.Worker, me int, next int64, shares func(shard int32) bool) *workernode.Worker {
	axes := b.AxesInUse()
	work := axes.Work
	node.HoldBack(b.Scheme)
	node.KeepCopies(b.CopyOf)
	if shares != nil {
		node.ShareMemory(shares)
	}
	if b.Config.InRounds() {
		node.InRounds()
	} else if b.Config.Overlaps() && work == nil {
		node.StartEarly(b.maySkip)
	}
	if work != nil {
		node.SetWork(work(me), len(b.Roles.Workers))
		if axes.Ahead != nil {
			node.PullAhead()
		}
	}
	if b.Config.Local.IsSet() {
		node.TakesSteps()
	}
	if f := b.fragments(); f != nil {
		turns := make([]int64, len(b.Plan.Shards))
		for i := range turns {
			turns[i] = f.Clock(int32(i), next)
		}
		node.SetDue(f.Due, turns)
	}
	if b.Axes.Due != nil {
		if len(b.Config.Awaits()) > 0 {
			panic("build: schemes wait for a straggler, and with exchange clocks their shards would change at different iterations")
		}
		node.SetDue(b.Axes.Due, nil)
	}
	return node
}

// maySkip says whether the shards of a rule may send a worker past iterations.
func (b *Run) maySkip(rule int) bool {
	phases, err := b.Phases(rule)
	return err != nil || inturn.MaySkip(phases)
}

// Fill writes the initial values of a shard of a model into a buffer.
func (b *Run) Fill(buf []float32, sh *shard.Shard, a *workload.Architecture) error {
	for _, g := range sh.Segs {
		into := buf[g.At-sh.Lo:][:g.Hi-g.Lo]
		if b.Initial == nil {
			workload.Fill(into, b.Config.Seed, a.Params()[g.Param], g.Lo)
		} else if err := b.Initial.Fill(into, g.Param, g.Lo); err != nil {
			return err
		}
	}
	return nil
}

// Store makes the store that does the arithmetic of a shard.
func (b *Run) Store(id int32, update optim.Update) *optim.Store {
	return b.Config.NewStore(b.Plan, id, update)
}
