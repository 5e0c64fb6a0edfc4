package serve

import (
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/metrics"
	"fluentps/ps/station"
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
func (s *Side) stale(rule int, versions int64) {
	if s.o.Observer != nil {
		s.o.Observer.Stale(rule, versions)
		return
	}
	s.unheard.Rules[rule].Add(versions)
}

// Delayed counts, over this server's shards, the pulls that a scheme held back and the pushes that waited for their turn.
func (s *Side) Delayed() (sum int64) {
	for _, id := range s.node.Shards() {
		sum += s.node.Shard(id).Stats.Held()
	}
	return sum
}

// tellEvery is how often a server tells rank 0: several times between two records.
func tellEvery(interval time.Duration) time.Duration {
	return min(tellMax, max(station.BeatEvery, interval/4))
}

// Tell tells rank 0 what it has not heard of, if it is time to; what one message does not hold goes into the next.
func (s *Side) Tell(now time.Duration) {
	u := &s.unheard
	if s.o.Observer != nil || now < u.at {
		return
	}
	u.at = now + tellEvery(s.station.Config.Metrics.Interval)
	delayed, room := s.Delayed(), tellsMax
	say := func(rule int, versions, pushes int64) {
		s.told++
		room--
		told := wire.Staleness{Server: s.node.Me(), Rule: int32(rule), Versions: versions, Pushes: pushes, Delayed: delayed}
		h := told.Header()
		s.station.Net.Send(0, &h)
	}
	s.station.Net.Begin()
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
	s.station.Net.End()
}
