package runtime

import (
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// How stale pushes were is known where they are committed, and shown by rank 0. The other servers tell it now and then, in one
// message each, about as often as they give a sign of life; what they have not told when training ends is in their report.

// tellMax is the longest time between two of these messages, for records that are further apart.
const tellMax = 5 * time.Second

// tellsMax is the records that fit into one message.
const tellsMax = comm.CtlMax / wire.Size

// unheard is what a server has seen and rank 0 has not heard of.
type unheard struct {
	Rules   []metrics.Hist // the staleness of pushes, by rule of sync
	next    int            // the rule to begin with
	at      time.Duration  // when it may be told
	delayed int64          // delayed pulls and pushes so far, when that was last told
}

// stale counts a push that was committed.
func (s *serverSide) stale(rule int, versions int64) {
	if l := s.r.lead; l != nil {
		l.window.stale[rule].Add(versions)
		return
	}
	s.unheard.Rules[rule].Add(versions)
}

// delayed counts, over this server's shards, the pulls that a scheme held back and the pushes that waited for their turn.
func (s *serverSide) delayed() (sum int64) {
	for _, id := range s.node.Shards() {
		sum += delayedOf(s.node.Shard(id).Stats)
	}
	return sum
}

func delayedOf(st core.Stats) int64 { return st.Delayed + st.Turns.Delayed }

// tellEvery is how often a server tells rank 0: several times between two records.
func tellEvery(interval time.Duration) time.Duration {
	return min(tellMax, max(beatEvery, interval/4))
}

// tell tells rank 0 what it has not heard of, if it is time to; what one message does not hold goes into the next.
func (s *serverSide) tell(now time.Duration) {
	u := &s.unheard
	if s.r.lead != nil || now < u.at {
		return
	}
	u.at = now + tellEvery(s.r.cfg.Metrics.Interval)
	delayed, room := s.delayed(), tellsMax
	say := func(rule int, versions, pushes int64) {
		s.told++
		room--
		told := wire.Staleness{Server: s.node.Me(), Rule: int32(rule), Versions: versions, Pushes: pushes, Delayed: delayed}
		h := told.Header()
		s.r.net.Send(0, &h)
	}
	s.r.net.Begin()
	for range u.Rules {
		h := &u.Rules[u.next]
		if h.N() > 0 && room < metrics.DigestMax {
			u.at = now // at the next beat
			break
		}
		h.Digest(func(versions, pushes int64) { say(u.next, versions, pushes) })
		h.Reset()
		u.next = (u.next + 1) % len(u.Rules)
	}
	if room == tellsMax && delayed != u.delayed {
		say(0, 0, 0)
	}
	u.delayed = delayed
	s.r.net.End()
}

// staleHeard takes what another server tells.
func (l *lead) staleHeard(s wire.Staleness) {
	l.heard++
	l.delayed[s.Server] = s.Delayed
	l.window.stale[s.Rule].AddN(s.Versions, s.Pushes)
}

// collect takes what the servers had not told when training ended.
func (l *lead) collect(reports []report) {
	for rank, rep := range reports {
		if rep.Server == nil || rank == l.r.me {
			continue
		}
		for rule := range rep.Server.Unheard.Rules {
			l.window.stale[rule].Merge(&rep.Server.Unheard.Rules[rule])
		}
		sum := int64(0)
		for _, sh := range rep.Server.Shards {
			sum += delayedOf(sh.State.Stats)
		}
		l.delayed[int32(l.r.roles.Server(rank))] = sum
	}
}

// setStale gives a record what is known of staleness and delays.
func (l *lead) setStale(rec *metrics.Record) {
	var all metrics.Hist
	for i := range l.window.stale {
		h := &l.window.stale[i]
		all.Merge(h)
		rec.Rules = append(rec.Rules, metrics.StalenessOf(h))
	}
	rec.Set(metrics.StalenessP50, float64(all.Quantile(0.5)))
	rec.Set(metrics.StalenessMax, float64(all.Max()))
	if s := l.r.server; s != nil {
		delayed := s.delayed()
		for _, n := range l.delayed {
			delayed += n
		}
		rec.Set(metrics.DelayedPulls, float64(delayed))
	}
}
