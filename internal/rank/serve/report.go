package serve

import (
	"fluentps/internal/core/servernode"
	"fluentps/internal/plan/origin"
	"fluentps/internal/show/metrics"
)

// Report is what a server reports at the end of training.
type Report struct {
	Spans       metrics.Spans
	Shards      []ShardReport
	SentToRank0 int64 // number of messages that rank 0 must have received
	Unreported  unreported
	Findings    []origin.Finding
	Clipped     servernode.Clipped // means; 0 of 0 unless the server has the lead shard and clips them
}

// ShardReport is the part of one shard.
type ShardReport struct {
	State servernode.ShardState
	Stale metrics.Hist
	Lead  metrics.Hist
}

// Report returns the server's report at the end of training.
func (s *Side) Report() *Report {
	rep := &Report{Spans: s.spans, SentToRank0: s.sentToRank0, Unreported: s.unreported, Findings: s.found.List()}
	if s.stores[0] != nil { // else every server would count an iteration
		rep.Clipped = s.node.Clipped()
	}
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		rep.Shards = append(rep.Shards, ShardReport{State: s.node.Shard(id), Stale: st.stale, Lead: st.lead})
	}
	return rep
}
