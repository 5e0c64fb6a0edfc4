package coordinate

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
)

// Stale counts a push that rank 0's server has committed.
func (l *Lead) Stale(rule int, versions int64) { l.window.stale[rule].Add(versions) }

// staleReported takes a report of another server.
func (l *Lead) staleReported(s wire.Staleness) {
	l.serverMessages++
	l.delayed[s.Server] = s.Delayed
	l.window.stale[s.Rule].AddN(s.Versions, s.Pushes)
}

// collect takes the counts that the servers had not reported when training ended.
func (l *Lead) collect(reports []report) {
	for rank, rep := range reports {
		if rep.Server == nil || rank == l.station.Me {
			continue
		}
		for rule := range rep.Server.Unreported.Rules {
			l.window.stale[rule].Merge(&rep.Server.Unreported.Rules[rule])
		}
		sum := int64(0)
		for _, sh := range rep.Server.Shards {
			sum += sh.State.Stats.Held()
		}
		l.delayed[int32(l.station.Roles.Server(rank))] = sum
	}
}

// setStale sets the staleness and delays of a record.
func (l *Lead) setStale(rec *records.Record) {
	var all metrics.Hist
	for i := range l.window.stale {
		h := &l.window.stale[i]
		all.Merge(h)
		rec.Rules = append(rec.Rules, metrics.StalenessOf(h))
	}
	if all.N() > 0 {
		rec.Set(records.StalenessP50, float64(all.Quantile(0.5)))
		rec.Set(records.StalenessMax, float64(all.Max()))
	}
	if s := l.r.Server; s != nil {
		delayed := s.Delayed()
		for _, n := range l.delayed {
			delayed += n
		}
		rec.Set(records.DelayedPulls, float64(delayed))
	}
}
