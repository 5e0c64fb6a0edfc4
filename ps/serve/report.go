package serve

import (
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// Report is what a server has to tell when training is over.
type Report struct {
	Spans   metrics.Spans
	Shards  []ShardReport
	Told    int64 // messages that rank 0 must have had
	Unheard unheard
}

// ShardReport is that of one of its shards.
type ShardReport struct {
	State core.ShardState
	Stale metrics.Hist
	Lead  metrics.Hist
}

// Report is what the server has to tell when training is over.
func (s *Side) Report() *Report {
	rep := &Report{Spans: s.spans, Told: s.told, Unheard: s.unheard}
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		rep.Shards = append(rep.Shards, ShardReport{State: s.node.Shard(id), Stale: st.stale, Lead: st.lead})
	}
	return rep
}
