package layout

import (
	"fmt"
	"strings"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// Memory is the most memory that one rank takes for buffers, in bytes. cluster.memory_max bounds it.
type Memory struct {
	Server     int64 // of the shards that it serves
	Worker     int64 // of its worker, or of a member
	Evaluation int64
	Control    int64 // control messages
	Records    int64 // of the iterations of its worker
	Layers     int64 // values and gradients of a batch
	Timeline   int64 // spans of the rank
}

// Total is the sum; negative if it overflows.
func (m Memory) Total() int64 {
	total := int64(0)
	for _, part := range []int64{m.Server, m.Worker, m.Evaluation, m.Control, m.Records, m.Layers, m.Timeline} {
		if total += part; total < 0 {
			return total
		}
	}
	return total
}

// text lists the parts, each with the settings that make it smaller.
func (m Memory) text() string {
	var parts []string
	for _, q := range []struct {
		bytes int64
		what  string
	}{
		{m.Server, "versions, staged pushes, sums and optimizer of its shards (lower staleness, use fold: arrival, or more servers)"},
		{m.Worker, "parameters, gradients, with push: delta optimizer, with payload encoded pieces and a residual, and with essp s+2 copies of its worker (lower staleness)"},
		{m.Evaluation, "evaluation"},
		{m.Control, "control messages"},
		{m.Records, "records of its worker's iterations"},
		{m.Layers, "values and gradients of the model's layers on its batch (lower train.batch_per_worker)"},
		{m.Timeline, "its timeline (metrics.trace)"},
	} {
		if q.bytes > 0 {
			parts = append(parts, metrics.Size(q.bytes)+" for "+q.what)
		}
	}
	return strings.Join(parts, ", ")
}

// memoryOfRanks returns the most memory of each rank.
func memoryOfRanks(t *Routes, scratch Scratch) ([]Memory, error) {
	c, p, roles := t.cfg, t.plan, t.roles
	computes := roles.Computes()
	all := make([]Memory, rankCount(roles))
	arena, rounds := int64(p.Arena)*shard.ElemBytes, roundBytes(c, p, roles)
	for rank := range all {
		m := &all[rank]
		m.Evaluation = arena + scratch.Evaluation
		m.Timeline = timelineBytes(c, p, roles)
		m.Control = int64(RingDepth(len(all)))*comm.CtlMax + t.FrameBytes(rank) + rounds
		if server := roles.Server(rank); server >= 0 {
			var err error
			if m.Server, err = t.ServerBytes(int32(server)); err != nil {
				return nil, err
			}
		}
		if lead := roles.Leader(rank); lead >= 0 {
			m.Worker = arena // of a member: its gradients
			if c.Local.IsSet() {
				m.Worker += 2 * arena // parameters and gradients of its own
			}
			if roles.Worker(rank) >= 0 {
				m.Worker = WorkerBytes(c, p, len(roles.Workers)) + sumBytes(p, roles, lead)
				if c.Local.IsSet() && Teams(c) {
					m.Worker += 2 * arena // of the rank's own, beside those of its team
				}
			}
			m.Records = int64(RecordsMax(c, computes)) * metrics.IterationBytes
			m.Layers = scratch.Worker
		}
		if rank == 0 && c.Evaluate.Where == "online" {
			m.Evaluation += arena + judgeBytes(c, p)
		}
	}
	return all, nil
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

// snapshotsThatFit returns how many snapshots every server can keep beside its other memory. It fails if a rank may need
// more than cluster.memory_max.
func snapshotsThatFit(c *configs.Config, p *shard.Plan, roles shard.Roles, all []Memory) (snapshots int64, err error) {
	snapshots = SnapshotsMax
	for rank, m := range all {
		total := m.Total()
		if total > c.Cluster.MemoryMax || total < 0 {
			return 0, fmt.Errorf("rank %d (%s) may need %s and cluster.memory_max is %s: %s; raise cluster.memory_max if the hosts have it",
				rank, roles.Name(rank), metrics.Size(total), metrics.Size(c.Cluster.MemoryMax), m.text())
		}
		if bytes := snapshotBytes(c, p, roles, rank); bytes > 0 {
			snapshots = min(snapshots, (c.Cluster.MemoryMax-total)/bytes)
		}
	}
	return snapshots, nil
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
