package serve

import (
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// A server knows how stale the pushes were that it committed, and rank 0 shows it. The other servers report to rank 0 from
// time to time, about as often as their signs of life; what is left when training ends is in their Report.

// reportEveryMax is the longest time between two reports, if records are further apart.
const reportEveryMax = 5 * time.Second

// reportsMax is the number of staleness records in one message.
const reportsMax = comm.CtlMax / wire.Size

// unreported is what a server has counted and has not reported to rank 0.
type unreported struct {
	Rules   []metrics.Hist // the staleness of pushes, by rule of sync
	next    int            // the rule to begin with
	due     time.Duration  // time of the next report
	delayed int64          // delayed pulls and pushes, as of the last report
}

// stale counts a push that was committed so many versions stale.
func (s *Side) stale(rule int, versions int64) {
	if s.o.Observer != nil {
		s.o.Observer.Stale(rule, versions)
		return
	}
	s.unreported.Rules[rule].Add(versions)
}

// Delayed counts, over this server's shards, the pulls that a scheme delayed and the pushes that waited for their turn.
func (s *Side) Delayed() (sum int64) {
	for _, id := range s.node.Shards() {
		sum += s.node.Shard(id).Stats.Held()
	}
	return sum
}

// reportEvery is the time between two reports of a server that has trained for so long: several reports fall between two records, which
// are at most interval apart, and closer in a run that is short.
func reportEvery(interval, trained time.Duration) time.Duration {
	return min(reportEveryMax, max(station.BeatEvery, min(interval/4, trained/200)))
}

// ReportStaleness sends rank 0 the counts that it does not know, if a report is due. Counts that do not fit into one
// message go into the next.
func (s *Side) ReportStaleness(now time.Duration) {
	u := &s.unreported
	if s.o.Observer != nil || now < u.due {
		return
	}
	u.due = now + reportEvery(s.station.Config.Metrics.Interval, now)
	delayed, free := s.Delayed(), reportsMax
	send := func(rule int, versions, pushes int64) {
		s.sentToRank0++
		free--
		record := wire.Staleness{Server: s.node.Me(), Rule: int32(rule), Versions: versions, Pushes: pushes, Delayed: delayed}
		h := record.Header()
		s.station.Net.Send(0, &h)
	}
	s.station.Net.Begin()
	for range u.Rules {
		h := &u.Rules[u.next]
		if h.N() > 0 && free < metrics.DigestMax {
			u.due = now // at the next beat
			break
		}
		h.Digest(func(versions, pushes int64) { send(u.next, versions, pushes) })
		h.Reset()
		u.next = (u.next + 1) % len(u.Rules)
	}
	if free == reportsMax && delayed != u.delayed {
		send(0, 0, 0)
	}
	u.delayed = delayed
	s.station.Net.End()
}
