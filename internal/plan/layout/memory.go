package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload/dataset"
)

// Memory is the most memory that one rank takes, in bytes, by purpose. cluster.memory_max bounds the Total.
type Memory struct {
	Program    int64 // code, libraries, and what they allocate by themselves
	Data       int64 // the data set
	Reading    int64 // in addition to Data, until the data set is read; nothing below is allocated before
	Rows       int64 // row numbers
	Dealing    int64 // permutations while rows are dealt, before training
	Server     int64 // of the shards that it serves
	Untouched  int64 // the part of Server that has no memory where all ranks are one process
	Worker     int64 // of its worker, or of a member
	Evaluation int64
	Control    int64 // control messages
	Queues     int64 // control messages inside MPI
	Records    int64 // of the iterations of its worker
	Layers     int64 // values and gradients of a batch
	Timeline   int64 // spans of the rank
	Snapshots  int64 // of its shards, for evaluations
	Files      int64 // of checkpoints that are written, and replicas
	Device     int64 // the host's side of a GPU
}

// lasting is what a rank takes from before its training to its end, without program and data.
func (m Memory) lasting() int64 { return sum(m.Rows, m.Server, m.Worker) }

// training is what comes to that when a rank trains and evaluates.
func (m Memory) training() int64 {
	return sum(m.Evaluation, m.Control, m.Queues, m.Records, m.Layers, m.Timeline, m.Snapshots, m.Files, m.Device)
}

// Total is the most at a time; negative if it overflows.
func (m Memory) Total() int64 {
	return sum(m.Program, m.Data, greatest(m.Reading, sum(m.lasting(), greatest(m.Dealing, m.training()))))
}

// sum is negative if it overflows, or if a part is.
func sum(parts ...int64) (total int64) {
	for _, part := range parts {
		if total += part; total < 0 || part < 0 {
			return -1
		}
	}
	return total
}

// greatest is negative if a part is.
func greatest(parts ...int64) int64 {
	if slices.Min(parts) < 0 {
		return -1
	}
	return slices.Max(parts)
}

// text lists the parts, the largest first, each with the settings that make it smaller.
func (m Memory) text() string {
	type part struct {
		bytes int64
		what  string
	}
	parts := []part{
		{m.Server, "versions, staged pushes, sums and optimizer of its shards (lower staleness, use fold: arrival, or more servers)"},
		{m.Worker, "parameters, gradients, with push: delta optimizer, with payload encoded pieces and a residual, and " +
			"with essp s+2 copies of its worker (lower staleness)"},
		{m.Rows, "numbers of its worker's rows (fewer data.rows, or more workers)"},
		{m.Dealing, "more while these are dealt (data.partition: disjoint_contiguous or disjoint_round_robin needs none)"},
		{m.Data, "the data set"},
		{m.Reading, "more while the data set is read"},
		{m.Program, "the program and its libraries"},
		{m.Evaluation, "evaluation"},
		{sum(m.Control, m.Queues), "control messages"},
		{m.Records, "records of its worker's iterations"},
		{m.Layers, "values and gradients of the model's layers on its batch (lower train.batch_per_worker)"},
		{m.Timeline, "its timeline (metrics.trace)"},
		{m.Files, "files of checkpoints in writing, and replicas (checkpoint.replica)"},
		{m.Device, "the host's side of its GPU"},
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.bytes, a.bytes) })
	var words []string
	for _, q := range parts {
		if q.bytes > 0 {
			words = append(words, metrics.Size(q.bytes)+" for "+q.what)
		}
	}
	return strings.Join(words, ", ")
}

// Ledger is the memory of all ranks of a run. plan, check, the start of a run and job scripts read this one sum.
type Ledger struct {
	Ranks     []Memory
	Snapshots int64 // that every server may keep at a time

	hosts []string
}

// NewLedger adds up the memory of ranks on these hosts, whose pieces go these ways. It fails if a rank may need more than
// cluster.memory_max, and then returns the ledger, too.
func NewLedger(t *Routes, hosts []string, set *dataset.Set) (*Ledger, error) {
	l, err := addUp(t, hosts, set)
	if err != nil {
		return nil, err
	}
	c, p, roles := t.cfg, t.plan, t.roles
	l.Snapshots = SnapshotsMax
	for rank, m := range l.Ranks {
		total := m.Total()
		if total > c.Cluster.MemoryMax || total < 0 {
			return l, fmt.Errorf("rank %d (%s) may need %s and cluster.memory_max is %s: %s; raise cluster.memory_max if the hosts have it",
				rank, roles.Name(rank), metrics.Size(total), metrics.Size(c.Cluster.MemoryMax), m.text())
		}
		if bytes := snapshotBytes(c, p, roles, rank); bytes > 0 {
			l.Snapshots = min(l.Snapshots, (c.Cluster.MemoryMax-total)/bytes)
		}
	}
	rows := set.Train.Rows()
	kept := min(l.Snapshots, snapshotsOf(c, c.Length(FactsOf(p, roles, rows)), rows))
	for rank := range l.Ranks {
		l.Ranks[rank].Snapshots = kept * snapshotBytes(c, p, roles, rank)
	}
	return l, nil
}

// addUp returns the memory of each rank without snapshots.
func addUp(t *Routes, hosts []string, set *dataset.Set) (*Ledger, error) {
	c, p, roles := t.cfg, t.plan, t.roles
	computes := roles.Computes()
	scratch := ScratchOf(c, set.Samples(), computes)
	all := make([]Memory, rankCount(roles))
	arena, rounds, rowBytes := int64(p.Arena)*shard.ElemBytes, roundBytes(c, p, roles), rowBytesOf(c, set.Train.Rows(), computes)
	files := fileBytes(c, p, roles, hosts)
	for rank := range all {
		m := &all[rank]
		m.Program, m.Data, m.Reading = ProgramBytes, set.Bytes(), set.ReadBytes()
		if rank == 0 || set.Test.Rows() > 0 {
			m.Evaluation = arena + scratch.Evaluation
		}
		m.Timeline = timelineBytes(c, p, roles)
		m.Control = int64(RingDepth(len(all)))*comm.CtlMax + t.FrameBytes(rank) + rounds
		m.Queues = mpiQueueBytes(roles, rank)
		m.Files = files[rank]
		if server := roles.Server(rank); server >= 0 {
			var err error
			if m.Server, err = t.ServerBytes(int32(server)); err != nil {
				return nil, err
			}
			m.Untouched = t.Untouched(int32(server))
		}
		if lead := roles.Leader(rank); lead >= 0 {
			m.Worker = memberBytes(c, p, roles, rank)
			m.Records = int64(RecordsMax(c, computes)) * timings.IterationBytes
			m.Layers = scratch.Worker
			m.Rows, m.Dealing = rowBytes.Kept, rowBytes.Dealing
			if c.Device.Kind == "cuda" {
				m.Device = gpuBytes
			}
		}
		if rank == 0 { // the final parameters in model order
			m.Evaluation += arena
		}
		if rank == 0 && c.Evaluate.Where == "online" {
			m.Evaluation += arena + judgeBytes(c, p)
		}
	}
	return &Ledger{Ranks: all, hosts: hosts}, nil
}

// memberBytes is the memory of the worker of a rank, or of the member that it is.
func memberBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, rank int) int64 {
	arena := int64(p.Arena) * shard.ElemBytes
	if roles.Worker(rank) >= 0 {
		bytes := WorkerBytes(c, p, len(roles.Workers)) + sumBytes(p, roles, roles.Leader(rank))
		if c.Local.IsSet() && Teams(c) {
			bytes += 2 * arena // of the rank's own, beside those of its team
		}
		return bytes
	}
	if c.Local.IsSet() {
		return 3 * arena // its gradients, and parameters and gradients of its own
	}
	return arena
}

// rowBytesOf is the memory of the row numbers of a rank that computes. Beside its share and the order of an epoch, windows need the share
// in the order of the file.
func rowBytesOf(c *configs.Config, rows, computes int) dataset.RowBytes {
	b := shareBytes(c, rows, computes)
	if c.Data.Deal.WindowRows() > 0 { // and the numbers of blocks, of two rows at least
		b.Kept += b.Kept/2 + b.Kept/4
	}
	return b
}

func shareBytes(c *configs.Config, rows, computes int) dataset.RowBytes {
	if c.Data.Skew != (dataset.Skew{}) { // a worker may have nearly all rows; all shares, and the group of each row, exist for a while
		return dataset.RowBytes{Kept: 12 * int64(rows), Dealing: 8 * int64(rows)}
	}
	if len(c.Work.Shares) == 0 && !c.DealsBatches() {
		return dataset.PartitionBytes(c.Data.Partition, rows, computes)
	}
	share := (int64(rows)*int64(c.BatchMax(computes)) + int64(c.Batch(computes)) - 1) / int64(c.Batch(computes))
	b := dataset.DealBytes(rows, int(min(int64(rows), share+1)), c.DealsBatches())
	if c.DealsBatches() { // they are dealt while training runs
		return dataset.RowBytes{Kept: b.Kept + b.Dealing}
	}
	return b
}

// rankCount is the number of ranks.
func rankCount(roles shard.Roles) (ranks int) {
	for _, list := range [][]int{roles.Servers, roles.Computing()} {
		for _, rank := range list {
			ranks = max(ranks, rank+1)
		}
	}
	return ranks
}

// snapshotBytes is what one snapshot takes on a rank.
func snapshotBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, rank int) int64 {
	if rank == 0 && Reduces(c) {
		return max(1, int64(p.Arena)*shard.ElemBytes)
	}
	if server := roles.Server(rank); server >= 0 {
		return max(1, shardBytes(p, int32(server)))
	}
	return 0
}
