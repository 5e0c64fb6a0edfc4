package sim

import (
	"fmt"
	"io"
	"strings"
	"time"

	"fluentps/internal/core"
	"fluentps/internal/show/metrics"
)

// count adds a step to the trace. Every CheckEvery steps it checks the invariants of the node.
func (s *Simulation) count(node int32, in *core.Input, n core.Node) {
	switch in.Kind {
	case core.PieceReady, core.PieceSent, core.PieceLanded, core.Arrived, core.ReplySent:
		s.counts.steps++
		if s.o.CheckEvery > 0 && s.counts.steps%s.o.CheckEvery == 0 {
			s.observer.Inspect(n)
		}
	}
	h := s.counts.trace
	h = mix(h, uint64(s.now))
	h = mix(h, uint64(node)<<32|uint64(in.Kind)<<24|uint64(in.Msg.Kind)<<16|uint64(in.Msg.Flags))
	h = mix(h, uint64(in.Piece)<<32|uint64(uint32(in.Shard+in.Msg.Shard)))
	h = mix(h, uint64(in.Msg.Iter)^uint64(in.Msg.Version)<<20^uint64(in.Msg.Clock)<<40)
	for i := range s.out {
		e := &s.out[i]
		if e.Kind == core.Snapshot {
			continue // an evaluation is not a decision: the trace must be that of timing mode
		}
		h = mix(h, uint64(e.Kind)<<56|uint64(uint32(e.To))<<24|uint64(uint32(e.Slot)))
		h = mix(h, uint64(e.Iter+e.Msg.Iter)<<32|uint64(uint32(e.Shard))<<16|uint64(uint32(e.Dst)))
	}
	s.counts.trace = h
}

// mix is one round of FNV-1a over 64 bits at once, with a shift so that high bits reach low ones.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 1099511628211
	return h ^ h>>32
}

func (s *Simulation) result() *Result {
	r := &Result{Steps: s.counts.steps, Trace: s.counts.trace, Lost: s.counts.lost, Joined: s.counts.joined, Duration: time.Duration(s.ended)}
	r.Summary = s.summary()
	for rank, t := range s.timelines {
		r.Timeline, r.Roles = append(r.Timeline, t), append(r.Roles, s.roles.Name(rank))
	}
	for i := range s.tallies {
		r.Leads = append(r.Leads, s.tallies[i].lead)
		r.Stale = append(r.Stale, s.tallies[i].stale)
		r.Delayed += r.Summary.PerShard[i].DelayedPulls
	}
	if s.values != nil {
		s.values.Finish(r)
	}
	return r
}

func (s *Simulation) summary() *metrics.Summary {
	lead := s.servers[0].node.Shard(0)
	wall := time.Duration(s.ended)
	sum := &metrics.Summary{
		Job: metrics.Job{
			Name: s.cfg.Name, Finished: metrics.FinishedOK, Mode: "simulated", Baseline: baselineOf(s.cfg),
			BaselineKeys: s.cfg.BaselineKeys, Servers: len(s.servers), Workers: len(s.workers),
		},
		CostModel: s.model(),
		Extent:    metrics.Extent{Iterations: s.Iterations(), Updates: lead.Version, Samples: lead.Samples},
		Seed:      s.cfg.Seed,
		Costs: metrics.Costs{
			WallS: metrics.Float(time.Duration(s.now).Seconds()), TrainS: metrics.Float(wall.Seconds()),
			SamplesPerS: metrics.Float(float64(lead.Samples) / wall.Seconds()),
		},
		Work:    s.cfg.WorkText(),
		Local:   s.cfg.Local.Text(),
		Payload: s.cfg.Payload.Summary(),
		Changes: s.changes,
		Traffic: metrics.Traffic{BytesSent: s.traffic.sent, BytesReceived: s.traffic.received},
	}
	if s.counts.lost-s.counts.joined == len(s.workers) {
		sum.Finished = "all workers were lost"
	}
	for i := range s.plan.Shards {
		sh := &s.plan.Shards[i]
		st := s.servers[sh.Server].node.Shard(sh.ID).Stats
		row := metrics.ShardSummary{Shard: i, Name: sh.Name, Scheme: s.cfg.Sync[sh.Rule].Schemes(),
			BoundKey: s.cfg.Sync[sh.Rule].BoundKey(), Server: int(sh.Server), Bytes: sh.Bytes(),
			Pushes: st.Pushes, Pulls: st.Pulls, DelayedPulls: st.Delayed, DelayedS: metrics.Float(st.DelayedFor.Seconds()),
			Dropped: st.Dropped, DroppedFor: st.Reasons(), Skipped: st.Skipped, Duplicates: st.Duplicates,
			Approximate: st.Approximate, Published: st.Published,
			TurnCounts: metrics.TurnCounts{DelayedGrants: st.Turns.Delayed,
				DelayedGrantsS: metrics.Float(st.Turns.DelayedFor.Seconds()), MissedTurns: st.Turns.Missed, Strays: st.Turns.Strays}}
		row.SetHists(&s.tallies[i].stale, &s.tallies[i].lead)
		for w := range s.workers {
			row.WaitedLast += s.workers[w].node.Counts.WaitedLast[i]
			_, reply := sh.WireBytes()
			row.AddCached(s.workers[w].node.Counts.Cached[i], reply)
		}
		sum.PerShard = append(sum.PerShard, row)
	}
	var workers, servers []metrics.Spans
	for i := range s.workers {
		w := &s.workers[i]
		w.spans.Wall = wall
		workers = append(workers, w.spans)
		sum.MaxLead = max(sum.MaxLead, w.node.Counts.LeadMax)
		sum.PerWorker = append(sum.PerWorker, metrics.WorkerSummary{Worker: i, Rank: w.rank, Host: fmt.Sprintf("host%d", w.host),
			Iterations: w.node.Counts.Started, Steps: w.taken(), Samples: w.samples,
			Threads: metrics.Mean(w.tasks.threadsSum, w.node.Counts.Started), MaxLead: w.node.Counts.LeadMax, Pace: &w.pace,
			ComputeS: metrics.Float(w.spans.Times[metrics.Compute].Seconds()), BlockedS: metrics.Float(w.spans.Times[metrics.Blocked].Seconds())})
	}
	for i := range s.servers {
		m := &s.servers[i]
		m.spans.Wall = wall
		m.spans.Add(metrics.Idle, m.spans.Rest())
		servers = append(servers, m.spans)
	}
	sum.PerRole = map[string]metrics.RoleTimes{metrics.RoleServer: metrics.OverRanks(servers), metrics.RoleWorker: metrics.OverRanks(workers)}
	return sum
}

// label begins every line of WriteText.
const label = "simulated: "

// WriteText writes the result of a run for people. The cost model comes first, and every line says that it is simulated, so that
// no line can be taken for a measurement.
func WriteText(w io.Writer, r *Result) error {
	var body strings.Builder
	what := "nothing was trained"
	if r.Parameters != nil {
		what = "gradients are real, times are modelled"
	}
	fmt.Fprintf(&body, "virtual time on a modelled cluster; %s\n", what)
	for _, line := range r.Summary.CostModel {
		body.WriteString("  " + line + "\n")
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(&body, "  memory   there was none for %d snapshots of shards, so evaluations were left out: raise "+
			"cluster.memory_max, or evaluate less often\n", r.LeftOut)
	}
	fmt.Fprintf(&body, "  steps    %d node steps, %d delayed pulls, %d workers lost%s, trace %016x\n\n", r.Steps,
		r.Delayed, r.Lost, rejoinText(r.Joined), r.Trace)
	if err := metrics.WriteText(&body, r.Summary, metrics.TextWidth-len(label)); err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(body.String()) {
		if strings.TrimSpace(line) == "" {
			line = "\n"
		}
		out.WriteString(strings.TrimRight(label+line, " \n") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
