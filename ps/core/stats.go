package core

import (
	"time"

	"fluentps/ps/scheme"
)

// Stats counts what one shard saw. Counters only grow. Staleness and lead are in the effects: Fold carries the
// version that the gradient saw, Reply the lead that it grants.
type Stats struct {
	Pushes     int64 // landed, duplicates not counted
	Pulls      int64
	Delayed    int64                 // pulls that the scheme did not answer at once
	DelayedFor time.Duration         // that these waited for the scheme, together
	Dropped    int64                 // pushes that were neither folded nor a duplicate
	DroppedFor [scheme.Reasons]int64 // by reason
	Duplicates int64
	Skipped    int64 // iterations passed over without a push
	Published  int64 // versions sent to workers that did not ask
	Turns      Turns
}

// Held counts the pulls that a scheme held back and the pushes that waited for their turn.
func (s Stats) Held() int64 { return s.Delayed + s.Turns.Delayed }

// Turns counts what a scheme that schedules the link did to the pushes of all its shards on a server.
type Turns struct {
	Delayed    int64         // pushes that were ready and had to wait for their grant
	DelayedFor time.Duration // together
	Missed     int64         // turns that passed because their worker was too late
	Strays     int64         // pushes that landed out of turn
}

func (s *Stats) drop(why scheme.Reason) {
	s.Dropped++
	s.DroppedFor[why]++
}

// Reasons names the reasons for which pushes were dropped, with their number; none is left out that occurred.
func (s *Stats) Reasons() map[string]int64 {
	by := map[string]int64{}
	for r, n := range s.DroppedFor {
		if n > 0 {
			by[scheme.Reason(r).String()] = n
		}
	}
	return by
}

// ShardState is what a server reports of one shard.
type ShardState struct {
	ID       int32
	Stats    Stats
	Version  int64
	Accepted int64
	Samples  int64
	Cur      int32 // the parameter buffer of the current version
}

// Shard reports one of this server's shards.
func (s *Server) Shard(id int32) ShardState {
	sh, stats := s.shards[id], s.shards[id].stats
	if sh.shared {
		stats.Turns = s.turns()
	}
	return ShardState{ID: id, Stats: stats, Version: sh.version, Accepted: sh.accepted, Samples: sh.samples, Cur: sh.cur}
}

// Shards lists the IDs of this server's shards, ascending.
func (s *Server) Shards() []int32 { return s.order }

// Stopping says whether the budget is used up.
func (s *Server) Stopping() bool { return s.stop }

// Waiting says whether a scheme of this server holds a pull or a grant back.
func (s *Server) Waiting() bool {
	for _, id := range s.order {
		if _, awaited := s.shards[id].turn(); awaited || s.shards[id].waiting() > 0 {
			return true
		}
	}
	return false
}

// Done says whether all workers have left, and nothing is on its way. It may be over when one comes back.
func (s *Server) Done() bool { return s.done }

// Me is this server's index.
func (s *Server) Me() int32 { return s.me }

// Slowest lists the workers with the smallest clock, and that clock, of a shard that holds pulls back, or the worker
// whose turn it is while others wait for theirs; none if nobody waits.
func (s *Server) Slowest(id int32) (workers []int32, clock int64) {
	sh := s.shards[id]
	if w, awaited := sh.turn(); awaited {
		return []int32{w}, sh.clock[w]
	}
	if sh.waiting() == 0 {
		return nil, 0
	}
	clock = gone
	for _, c := range sh.clock {
		clock = min(clock, c)
	}
	for w, c := range sh.clock {
		if c == clock {
			workers = append(workers, int32(w))
		}
	}
	return workers, clock
}
