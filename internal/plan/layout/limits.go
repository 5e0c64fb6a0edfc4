package layout

import (
	"fmt"
	"math"
	"slices"

	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/tasks"
	"fluentps/internal/policy/optim"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// aheadBytes is the memory for the pushes of a shard that are received ahead.
func (t *Routes) aheadBytes(sh *shard.Shard) int64 {
	if !t.ReceivesAhead(sh) {
		return 0
	}
	return int64(len(t.roles.Workers)) * sh.Bytes()
}

// TailBytes is what a worker's gradient arena has behind the gradients, in bytes.
func TailBytes(c *configs.Config) int {
	if !Reduces(c) {
		return 0
	}
	return shard.BucketTail * shard.ElemBytes
}

// SnapshotsMax bounds the snapshots that are kept of one shard at a time, even if memory allows more.
const SnapshotsMax = 1000

// Scratch is the memory, in bytes, for the values and gradients of a model's layers: of a rank that computes, and of any
// rank while it evaluates.
type Scratch struct{ Worker, Evaluation int64 }

// ScratchOf counts the scratch for samples such as from. On a GPU a worker's scratch is in GPU memory, whose driver reports
// a shortage.
func ScratchOf(c *configs.Config, from workload.Samples, computes int) Scratch {
	a, err := workload.NewArchitecture(c.ModelSpec(), from)
	if err != nil {
		return Scratch{}
	}
	s := Scratch{Evaluation: a.Scratch.Of(a.EvalRows())}
	if c.Device.Kind != "cuda" {
		s.Worker = a.Scratch.Of(c.BatchMax(computes))
	}
	return s
}

// RecordsMax is how many iterations of one worker are kept for iterations.csv. It bounds the file, and takes a small part
// of the memory.
func RecordsMax(c *configs.Config, workers int) int {
	const part = 256
	longest := min(timings.RowsOfWorkerMax, max(1, timings.RowsMax/workers))
	return int(max(1, min(int64(longest), (c.Cluster.MemoryMax-ProgramBytes)/part/timings.IterationBytes)))
}

// Timeline bounds what is recorded of a run with metrics.trace.
func Timeline(c *configs.Config, p *shard.Plan, roles shard.Roles) timeline.Limits {
	layers := 0
	for i := range p.Params {
		layers = max(layers, p.Params[i].Layer+1)
	}
	steps := 1
	if c.Local.IsSet() {
		steps = int(min(max(1, c.Local.Steps), timeline.EventsMax))
	}
	busiest := (8+3*layers)*steps + 2*len(p.Shards) // of a worker: passes, layers, waits; pushes and pulls
	for m := range roles.Servers {
		busiest = max(busiest, len(p.OfServer(int32(m)))*(2*len(roles.Workers)+1)) // folds, replies, a commit
	}
	return timeline.LimitsOf(rankCount(roles), busiest)
}

// timelineBytes is the memory of a rank's timeline.
func timelineBytes(c *configs.Config, p *shard.Plan, roles shard.Roles) int64 {
	if !c.Metrics.Trace {
		return 0
	}
	return int64(Timeline(c, p, roles).Events) * timeline.EventBytes
}

func shardBytes(p *shard.Plan, server int32) int64 {
	var n int64
	for _, id := range p.OfServer(server) {
		n += p.Shards[id].Bytes()
	}
	return n
}

// judgeBytes is what rank 0 reads at a time of a checkpoint that it evaluates: the largest file of a server.
func judgeBytes(c *configs.Config, p *shard.Plan) (bytesMax int64) {
	if c.Checkpoint.Best == configs.BestNone {
		return 0
	}
	for server := range p.Servers {
		var n int64
		for _, id := range p.OfServer(int32(server)) {
			n += p.Shards[id].Bytes() * int64(Vectors(c, &p.Shards[id]))
		}
		bytesMax = max(bytesMax, n)
	}
	return bytesMax
}

// OptimizerVectors is how many numbers the optimizer keeps for each parameter.
func OptimizerVectors(c *configs.Config) int64 { return stateOf(c.Update()) }

// ServerVectors is how many numbers the rule of the servers keeps for each parameter.
func ServerVectors(c *configs.Config) int64 { return stateOf(c.ServerUpdate(1)) }

func stateOf(u optim.Update, err error) int64 {
	if err != nil {
		panic("layout: the optimizer of a checked configuration: " + err.Error())
	}
	return int64(u.Rule.State())
}

// WorkerBytes is a worker's memory: parameters and gradients, the state of its own optimizer, copies and published versions
// of shards, encoded pieces, and copies for checkpoints.
func WorkerBytes(c *configs.Config, p *shard.Plan, workers int) int64 {
	copyOf := func(rule int) inturn.Copy { return CopyOf(c, rule, workers) }
	arenas := int64(2)
	if c.ComputesInSteps() {
		arenas += 2 + int64(tasks.Kept(c.Work)) // the parameters of the iteration, sums of gradients, and gradients that are pushed later
	}
	if Reduces(c) && (c.BaselineAlgorithm == "auto" || c.BaselineAlgorithm == "mpi") {
		arenas++ // MPI_Iallreduce copies each bucket, and all of them may be in flight
	}
	if workload.IsExternal(c.Model.Name) {
		arenas++ // of gradients, where no file of the window can be lent to the program; before training, the first values
	}
	return arenas*int64(p.Arena)*shard.ElemBytes + int64(TailBytes(c)) + localBytes(c, p) + inturn.CopyBytes(p, copyOf) +
		workerEncodedBytes(c, p) + checkpointCopyBytes(c, p) + ownMatrixBytes(c, p)
}

// checkpointCopyBytes is what a worker copies for a checkpoint during training: the residual and the state of its own
// optimizer.
func checkpointCopyBytes(c *configs.Config, p *shard.Plan) (bytes int64) {
	if !c.Checkpoint.Periodic() {
		return 0
	}
	if c.Payload.Residual() {
		bytes = int64(p.Arena) * shard.ElemBytes
	}
	if c.Local.IsSet() {
		_, saved := StepVectors(c)
		return bytes + saved*int64(p.Arena)*shard.ElemBytes
	}
	return bytes + localBytes(c, p)
}

// sumBytes is what a worker with members takes for the sums of their gradients and its own.
func sumBytes(p *shard.Plan, roles shard.Roles, worker int) int64 {
	if len(roles.Team(worker)) == 1 {
		return 0
	}
	return int64(p.Arena) * shard.ElemBytes
}

// localBytes is the state of the worker's own optimizer, which it has if it pushes deltas or pushes nothing; with steps of its own,
// parameters and gradients of its own, too.
func localBytes(c *configs.Config, p *shard.Plan) int64 {
	if c.Local.IsSet() {
		all, _ := StepVectors(c)
		return all * int64(p.Arena) * shard.ElemBytes
	}
	if Reduces(c) {
		return OptimizerVectors(c) * int64(p.Arena) * shard.ElemBytes
	}
	for i := range p.Shards {
		if c.Sync[p.Shards[i].Rule].Push == configs.PushDelta {
			return OptimizerVectors(c) * int64(p.Arena) * shard.ElemBytes
		}
	}
	return 0
}

// Versions is the number of a server's buffers for the versions of a shard.
func Versions(c *configs.Config, workers int) int {
	return servernode.Buffers(workers, c.Checkpoint.Periodic())
}

// ServerBytes is the most memory that a server's shards take: versions, staged pushes, pending sums, the optimizer's state,
// encoded pieces, pushes that are received ahead, and copies for checkpoints. A push that is read in its worker's memory is not staged
// if no worker may be ahead of others: it is folded before the worker may write again.
func (t *Routes) ServerBytes(server int32) (int64, error) {
	var total int64
	c, p, workers := t.cfg, t.plan, len(t.roles.Workers)
	for _, id := range p.OfServer(server) {
		s := &p.Shards[id]
		rule := &c.Sync[s.Rule]
		slots, means, err := inturn.Most(rule.InTurn(), workers)
		if err != nil {
			return 0, fmt.Errorf("sync: match %q: %w", rule.Match, err)
		}
		vectors, count := int64(slots)+1+int64(means), Versions(c, workers) // beside the versions, and these
		if t.inStep(rule.InTurn()) {
			near := t.readInPlace(id)
			vectors -= int64(near)
			if workers <= optim.QueueMax { // the commit reads the pushes themselves, so nothing needs pending sums
				vectors--
			}
			if near == 0 {
				count = min(count, versionsInStep(c))
			}
		}
		vectors += tasks.Slots(c.Work, workers)
		var state int64
		if c.Optimized(s) {
			state = ServerVectors(c)
		}
		vectors += state
		if c.Checkpoint.Periodic() {
			vectors += state // the copy for a checkpoint in writing
		}
		versions := int64(count) * int64(aligned(int(s.Bytes()))) // aligned as in shared memory
		total += versions + s.Bytes()*vectors + optim.SpreadBytes(s.Hi-s.Lo, c.Device.Threads) +
			serverEncodedBytes(c, s, workers) + t.aheadBytes(s)
	}
	return total + matrixBytes(c, p, server), nil
}

// versionsInStep is how many buffers for versions of a shard are ever used if no worker may be ahead of another: a worker pushes only
// after it has all of a version. So at a commit the version before the current one is in no worker's flight, and one buffer more is for
// a completion that its sender has not noticed yet. In a window all of Versions have memory, used or not.
func versionsInStep(c *configs.Config) int { return servernode.Buffers(1, c.Checkpoint.Periodic()) }

// Untouched is the part of ServerBytes that ranks of one process never touch: versions in a window, which have no memory until then.
func (t *Routes) Untouched(server int32) (bytes int64) {
	more := Versions(t.cfg, len(t.roles.Workers)) - versionsInStep(t.cfg)
	for _, id := range t.plan.OfServer(server) {
		s := &t.plan.Shards[id]
		if more > 0 && t.readInPlace(id) > 0 && t.inStep(t.cfg.Sync[s.Rule].InTurn()) {
			bytes += int64(more) * int64(aligned(int(s.Bytes())))
		}
	}
	return bytes
}

// inStep says whether no worker may be ahead of another under any of the schemes, and each pushes once in an iteration.
func (t *Routes) inStep(phases []scheme.Phase) bool {
	return !t.cfg.ComputesInSteps() && !slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
		e, ok := scheme.All.Lookup(ph.Scheme)
		if !ok {
			return true
		}
		lead, bounded := e.LeadMax(ph.Params)
		return !bounded || lead > 0 || ph.Common.Fold != scheme.FoldRank
	})
}

// readInPlace is how many workers have their pushes of a shard read in their own memory.
func (t *Routes) readInPlace(id int32) (n int) {
	for w := range t.roles.Workers {
		if t.ReadsGradients(id, int32(w)) {
			n++
		}
	}
	return n
}

// Vectors is the number of vectors of a shard: the parameters, and those of the optimizer.
func Vectors(c *configs.Config, sh *shard.Shard) int {
	if c.Optimized(sh) {
		return 1 + int(ServerVectors(c))
	}
	return 1
}

// snapshotsOf estimates how many snapshots a run of that length takes. The bound is Ledger.Snapshots.
func snapshotsOf(c *configs.Config, n configs.Length, rows int) int64 {
	every, samples := float64(c.Evaluate.Samples(rows)), min(n.Samples, n.Iterations*float64(n.PerIteration))
	if every == 0 {
		return 0
	}
	// Pushes in flight when the budget is used up may pass a few more marks; a shard keeps one snapshot a commit.
	return int64(min(SnapshotsMax, math.Floor(samples/every)+1+float64(c.Cluster.Servers)))
}
