package layout

import (
	"fmt"
	"math"

	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// aheadBytes is the memory of pushes of a shard that are received ahead.
func (t *Routes) aheadBytes(sh *shard.Shard) int64 {
	if !t.ReceivesAhead(sh) {
		return 0
	}
	return int64(len(t.roles.Workers)) * sh.Bytes()
}

// TailBytes is what a worker's gradient arena has behind the gradients.
func TailBytes(c *configs.Config) int {
	if !Reduces(c) {
		return 0
	}
	return shard.BucketTail * shard.ElemBytes
}

// SnapshotsMax bounds the snapshots kept of one shard at once, whatever room there is.
const SnapshotsMax = 1000

// Limits says how many snapshots every server can keep, or which rank may need more memory than
// cluster.memory_max. It counts all buffers but the data set's, the parcels of replicas, which depend on the hosts, and 8 MiB
// for each file of a checkpoint that is being written; nothing grows past that, but that buffers come from slabs: one of 1 to
// 4 MiB for each length in use may be empty for the most part (comm.Pool).
func Limits(c *configs.Config, p *shard.Plan, roles shard.Roles, scratch Scratch) (snapshots int64, err error) {
	all, err := memoryOfRanks(NewRoutes(c, p, roles, nil, Thresholds{}), scratch)
	if err != nil {
		return 0, err
	}
	return roomFor(c, p, roles, all)
}

// Scratch is the memory, in bytes, for the values and gradients of a model's layers: of a rank that computes, and of any while
// it evaluates.
type Scratch struct{ Worker, Evaluation int64 }

// ScratchOf counts it for samples such as from. On a GPU a worker's is the GPU's, whose driver says when there is too little.
func ScratchOf(c *configs.Config, from workload.Samples, computes int) Scratch {
	spec := c.ModelSpec()
	s := Scratch{Evaluation: workload.ScratchBytes(spec, from, workload.EvalRows(spec, from))}
	if c.Device.Kind != "cuda" {
		s.Worker = workload.ScratchBytes(spec, from, BatchOf(c, computes, 0))
	}
	return s
}

// RecordsMax is how many iterations of one worker are kept for iterations.csv: bounded for the file's sake, and to
// a small part of the memory.
func RecordsMax(c *configs.Config, workers int) int {
	const part = 256
	most := min(metrics.IterationsOfWorkerMax, max(1, metrics.IterationsMax/workers))
	return int(min(int64(most), c.Cluster.MemoryMax/part/metrics.IterationBytes))
}

func shardBytes(p *shard.Plan, server int32) int64 {
	var n int64
	for _, id := range p.OfServer(server) {
		n += p.Shards[id].Bytes()
	}
	return n
}

// judgedBytes is what rank 0 reads at once of a checkpoint that it looks at: the file of the server with most.
func judgedBytes(c *configs.Config, p *shard.Plan) (most int64) {
	if c.Checkpoint.Best == configs.BestNone {
		return 0
	}
	for server := range p.Servers {
		var n int64
		for _, id := range p.OfServer(int32(server)) {
			n += p.Shards[id].Bytes() * int64(Vectors(c, &p.Shards[id]))
		}
		most = max(most, n)
	}
	return most
}

// OptimizerVectors is how many numbers the optimizer keeps beside each parameter.
func OptimizerVectors(c *configs.Config) int64 {
	u, err := c.Update()
	if err != nil {
		panic("layout: an optimizer that passed the check: " + err.Error())
	}
	return int64(u.Rule.State())
}

// WorkerBytes is what a worker takes: parameters and gradients, the state of its own optimizer, and what it keeps and
// receives beside the parameters where versions are published to it, what does not travel as it is, and what it copies for
// checkpoints.
func WorkerBytes(c *configs.Config, p *shard.Plan, workers int) int64 {
	copyOf := func(rule int) core.Copy { return CopyOf(c, rule, workers) }
	return 2*int64(p.Arena)*shard.ElemBytes + int64(TailBytes(c)) + localBytes(c, p) + core.CopyBytes(p, copyOf) + workerEncodedBytes(c, p) + keptBytes(c, p)
}

// keptBytes is what a worker copies for a checkpoint while training goes on: residual, and the state of its own optimizer.
func keptBytes(c *configs.Config, p *shard.Plan) (bytes int64) {
	if !c.Checkpoint.Periodic() {
		return 0
	}
	if c.Payload.Residual() {
		bytes = int64(p.Arena) * shard.ElemBytes
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

// localBytes is the state of the optimizer that a worker has of its own where it pushes deltas, or pushes nothing.
func localBytes(c *configs.Config, p *shard.Plan) int64 {
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

// Versions is how many buffers a server has for the versions of a shard.
func Versions(c *configs.Config, workers int) int {
	return core.Buffers(workers, c.Checkpoint.Periodic())
}

// ServerBytes is the most memory that a server's shards take: its versions, the staged pushes, the pending
// sums and the optimizer's state of each, what of them does not travel as it is, the pushes that are received ahead, and
// what is copied for a checkpoint while training goes on.
func (t *Routes) ServerBytes(server int32) (int64, error) {
	var total int64
	c, p, workers := t.cfg, t.plan, len(t.roles.Workers)
	for _, id := range p.OfServer(server) {
		s := &p.Shards[id]
		rule := &c.Sync[s.Rule]
		slots, means, err := core.Most(rule.InTurn(), workers)
		if err != nil {
			return 0, fmt.Errorf("sync: match %q: %w", rule.Match, err)
		}
		vectors := int64(slots) + 1 + int64(means) // beside the versions
		var state int64
		if c.Optimized(s) {
			state = OptimizerVectors(c)
		}
		vectors += state
		if c.Checkpoint.Periodic() {
			vectors += state // the copy that is written
		}
		versions := int64(Versions(c, workers)) * int64(aligned(int(s.Bytes()))) // as far apart as in shared memory
		total += versions + s.Bytes()*vectors + optim.SpreadBytes(s.Hi-s.Lo, c.Device.Threads) + serverEncodedBytes(c, s, workers) + t.aheadBytes(s)
	}
	return total, nil
}

// Vectors is how many vectors there are of a shard: the parameters, and those of the optimizer.
func Vectors(c *configs.Config, sh *shard.Shard) int {
	if c.Optimized(sh) {
		return 1 + int(OptimizerVectors(c))
	}
	return 1
}

// snapshotsOf is about how many snapshots a run of that length takes; Limits is what holds.
func snapshotsOf(c *configs.Config, n configs.Length, rows int) int64 {
	every, samples := float64(c.Evaluate.Samples(rows)), min(n.Samples, n.Iterations*float64(n.PerIteration))
	if every == 0 {
		return 0
	}
	// Pushes on their way when the budget is used up may pass a few marks more; each shard keeps one a commit.
	return int64(min(SnapshotsMax, math.Floor(samples/every)+1+float64(c.Cluster.Servers)))
}
