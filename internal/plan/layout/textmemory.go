package layout

import (
	"fmt"
	"strings"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/scheme"
	"fluentps/ps/workload/dataset"
)

func planMemory(b *strings.Builder, t *Routes, hosts []string, set *dataset.Set) {
	c, p, roles := t.cfg, t.plan, t.roles
	scratch, rows := ScratchOf(c, set.Samples(), roles.Computes()), set.Train.Rows()
	l, err := NewLedger(t, hosts, set)
	fmt.Fprintf(b, "\nMemory limits per rank, together at most cluster.memory_max (%s)\n", metrics.Size(c.Cluster.MemoryMax))
	for m := range roles.Servers {
		bytes, err := t.ServerBytes(int32(m))
		if err != nil {
			fmt.Fprintf(b, "  server %d: %v\n", m, err)
			continue
		}
		fmt.Fprintf(b, "  server %d: %s (versions in flight, staged pushes, sums, optimizer%s)\n", m, metrics.Size(bytes), codecAndCopyText(c))
	}
	fmt.Fprintf(b, "  each worker: %s (%s)\n", metrics.Size(WorkerBytes(c, p, len(roles.Workers))), workerText(c, p))
	computes := roles.Computes()
	if n := rowBytesOf(c, rows, computes); n.Kept > 0 {
		fmt.Fprintf(b, "  each rank that computes: %s (numbers of its rows, and their order in an epoch)%s\n",
			metrics.Size(n.Kept), moreText(n.Dealing, "while rows are dealt, before training"))
	}
	records := RecordsMax(c, computes)
	fmt.Fprintf(b, "  each worker: %s (records of its first %d iterations)\n", metrics.Size(int64(records)*timings.IterationBytes), records)
	if n := timelineBytes(c, p, roles); n > 0 {
		l := Timeline(c, p, roles)
		fmt.Fprintf(b, "  each rank: %s (timeline: its first %d spans; all of the first %d iterations, then every tenth "+
			"up to ten times as many, every hundredth, and so on)\n", metrics.Size(n), l.Events, l.First)
	}
	if scratch.Worker > 0 {
		fmt.Fprintf(b, "  each rank that computes: %s (values and gradients of the layers, on a batch of %d)\n",
			metrics.Size(scratch.Worker), c.BatchMax(computes))
	}
	if computes > len(roles.Workers) {
		arena := metrics.Size(int64(p.Arena) * shard.ElemBytes)
		fmt.Fprintf(b, "  each worker with members: %s more for the sums of their gradients; each member: %s (gradients; "+
			"the parameters are its worker's), and the records\n", arena, arena)
		fmt.Fprintf(b, "  shared between the ranks of a host, of these: %s of parameters of a worker with members, %s of "+
			"gradients of each member\n", arena, arena)
	}
	ranks := len(roles.Servers) + computes
	var frames int64
	for rank := range ranks {
		frames = max(frames, t.FrameBytes(rank)+roundBytes(c, p, roles))
	}
	fmt.Fprintf(b, "  each rank: %s of receives for control messages, at most %s queued inside MPI, at most %s of "+
		"messages being filled or sent, %s while it evaluates\n",
		metrics.Size(int64(RingDepth(ranks))*comm.CtlMax), metrics.Size(int64(ranks-1)*comm.BacklogMax*comm.CtlMax),
		metrics.Size(frames), metrics.Size(int64(p.Arena)*shard.ElemBytes+scratch.Evaluation))
	fmt.Fprintf(b, "  each rank: %s (the data set)%s, %s (the program and its libraries, with %s of garbage)\n",
		metrics.Size(set.Bytes()), moreText(set.ReadBytes(), "while it is read"), metrics.Size(ProgramBytes), metrics.Size(GarbageBytesMax))
	if n := set.MappedBytes(); n > 0 {
		fmt.Fprintf(b, "  beside all this, for all ranks of a host together: %s of mapped files, which the system takes back when it "+
			"needs memory\n",
			metrics.Size(n))
	}
	if l == nil {
		fmt.Fprintf(b, "  %v\n", err)
		return
	}
	if c.Evaluate.Samples(rows) > 0 {
		n := min(l.Snapshots, snapshotsOf(c, c.Length(FactsOf(p, roles, rows)), rows))
		fmt.Fprintf(b, "  snapshots for evaluation, over all servers: at most %d, %s\n", n, metrics.Size(n*int64(p.Arena)*shard.ElemBytes))
	}
	fullest := 0
	for rank, m := range l.Ranks {
		if m.Total() > l.Ranks[fullest].Total() {
			fullest = rank
		}
	}
	fmt.Fprintf(b, "  together: at most %s, in rank %d (%s)\n", metrics.Size(l.Ranks[fullest].Total()), fullest, roles.Name(fullest))
	planHosts(b, l, set)
}

// moreText says how much more memory there is for a while, if there is any.
func moreText(bytes int64, when string) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %s more %s", metrics.Size(bytes), when)
}

// workerText says what a worker's memory is for.
func workerText(c *configs.Config, p *shard.Plan) string {
	text := "parameters and gradients" + codecAndCopyText(c)
	if localBytes(c, p) > 0 {
		text += ", optimizer of its own"
		if c.Local.IsSet() {
			text += " with parameters and gradients"
		}
		if e, _ := local.All.Lookup(c.Local.Policy); e.KeepsBase() {
			text += ", the parameters that it continued from"
		}
	}
	for i := range p.Shards {
		if CopyOf(c, p.Shards[i].Rule, 1).Kind == scheme.Published {
			return text + ", published versions and pushes that they may lack"
		}
	}
	return text
}

// codecAndCopyText names the memory of codecs and of copies for checkpoints, if there is any.
func codecAndCopyText(c *configs.Config) string {
	text := ""
	if c.Payload.Lossy() {
		text = ", encoded pieces"
	}
	if withKeys(c) {
		text = ", pieces with their keys"
	}
	if c.Checkpoint.Periodic() {
		text += ", copies for checkpoints"
	}
	return text
}
