package sim

import (
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/core/workernode"
	"fluentps/internal/plan/build"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
)

// What the other rooms may see of a simulation.

func (s *Simulation) Config() *configs.Config { return s.cfg }

func (s *Simulation) Plan() *shard.Plan { return s.plan }

// Rows is the number of training rows.
func (s *Simulation) Rows() int { return s.o.Rows }

// Now is the virtual time, Ended the time at which the last worker finished or died.
func (s *Simulation) Now() time.Duration { return time.Duration(s.now) }

func (s *Simulation) Ended() time.Duration { return time.Duration(s.ended) }

func (s *Simulation) Workers() int { return len(s.workers) }

func (s *Simulation) Servers() int { return len(s.servers) }

// Worker is the node of a worker, in its present life.
func (s *Simulation) Worker(i int32) *workernode.Worker { return s.workers[i].node }

func (s *Simulation) Server(i int32) *servernode.Server { return s.servers[i].node }

// Shard is what its server knows of a shard.
func (s *Simulation) Shard(id int32) servernode.ShardState {
	return s.servers[s.plan.Shards[id].Server].node.Shard(id)
}

// MeansClipped counts the iterations whose mean was clipped, among all, where servers clip means.
func (s *Simulation) MeansClipped() (clipped, of int64) {
	k := s.servers[s.plan.Shards[0].Server].node.Clipped()
	return k.Clipped, k.Of
}

// Batch is the number of samples of a worker's iteration.
func (s *Simulation) Batch(worker int32) int64 { return s.workers[worker].batch }

// Host is where a worker runs.
func (s *Simulation) Host(worker int32) int { return s.workers[worker].host }

func (s *Simulation) IsDead(worker int32) bool { return s.workers[worker].dead }

// Life is how often a worker has rejoined.
func (s *Simulation) Life(worker int32) uint16 { return s.workers[worker].life }

// Steps are a worker's own ones between two exchanges; nil: it takes none.
func (s *Simulation) Steps(worker int32) *steps.Worker { return s.workers[worker].steps.steps }

// Dealt is the plan of a worker's batches; its Batches are nil if batches never change.
func (s *Simulation) Dealt(worker int32) *work.Assignment { return &s.workers[worker].dealt.plan }

// Axes are the policies in use, Code the one of coded pushes; nil: pushes are not coded.
func (s *Simulation) Axes() *build.Axes { return &s.policies.axes }

func (s *Simulation) Code() *code.Code { return s.policies.code }

// HasTasks says whether policies say which samples the workers compute.
func (s *Simulation) HasTasks() bool { return s.policies.axes.Work != nil }

// Clock is the number of exchanges of a shard before an iteration. Fragments is the number of groups of shards that are exchanged in
// turn, and Fragment that of a shard.
func (s *Simulation) Clock(shard int32, iter int64) int64 {
	if s.policies.fragments == nil {
		return iter
	}
	return s.policies.fragments.Clock(shard, iter)
}

func (s *Simulation) Fragments() int64 {
	if s.policies.fragments == nil {
		return 1
	}
	return s.policies.fragments.N()
}

func (s *Simulation) Fragment(shard int32) int64 {
	if s.policies.fragments == nil {
		return 0
	}
	return s.policies.fragments.Of(shard)
}

// CopyOf says how workers keep their copies of the shards of a rule.
func (s *Simulation) CopyOf(rule int) inturn.Copy { return s.Build().CopyOf(rule) }

// Build is the builder of nodes and stores, which a real run uses, too.
func (s *Simulation) Build() *build.Run {
	return &build.Run{Config: s.cfg, Plan: s.plan, Roles: s.roles, Rows: s.o.Rows, Axes: s.policies.axes}
}

// Traffic counts the bytes of all transfers: nothing is in flight when those that were sent have been received, or lost with a worker.
func (s *Simulation) Traffic() (sent, received, lost int64) {
	return s.traffic.sent, s.traffic.received, s.traffic.lost
}

// Iterations are those of the run: accepted pushes of the lead shard / workers.
func (s *Simulation) Iterations() int64 {
	return s.servers[0].node.Shard(0).Accepted / int64(len(s.workers))
}

// Stop ends the run for a reason that the nodes cannot see.
func (s *Simulation) Stop() { s.q.after(s.now, 0, evStop, 0, 0) }
