package servernode

import (
	"time"

	"fluentps/ps/scheme"
)

// Stats counts what happened at one shard. Counters only grow. Staleness and lead are in the effects: Fold carries the
// version that the gradient saw, Reply the lead that it grants.
type Stats struct {
	Pushes     int64 // landed, without duplicates
	Pulls      int64
	Delayed    int64                 // pulls that the scheme did not answer at once
	DelayedFor time.Duration         // time that these waited, summed
	Dropped    int64                 // pushes that were neither folded nor a duplicate
	DroppedFor [scheme.Reasons]int64 // by reason
	Duplicates int64
	Skipped    int64 // iterations that a worker skipped without a push, or, where they have two (Ahead.Apart), without the second
	// Versions of coded pushes that lack some of the whole gradient: it was decoded approximately.
	Approximate int64
	Published   int64 // versions sent to workers without a pull
	Turns       Turns
}

// Held counts the pulls that a scheme held back and the pushes that waited for their turn.
func (s Stats) Held() int64 { return s.Delayed + s.Turns.Delayed }

// Turns counts, for all shards on a server of a scheme that schedules the link, what happened to their pushes.
type Turns struct {
	Delayed    int64         // pushes that were ready and had to wait for their grant
	DelayedFor time.Duration // time that these waited, summed
	Missed     int64         // turns that passed because their worker was late
	Strays     int64         // pushes that landed out of turn
}

func (s *Stats) drop(why scheme.Reason) {
	s.Dropped++
	s.DroppedFor[why]++
}

// Reasons is the number of dropped pushes by the name of the reason; it has every reason that occurred.
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
	Changes  int64 // of the scheme, at clocks that were announced
}

// Shard reports one of this server's shards.
func (s *Server) Shard(id int32) ShardState {
	sh, stats := s.shards[id], s.shards[id].stats
	if sh.schedulesLink {
		stats.Turns = s.turnCounts()
	}
	return ShardState{ID: id, Stats: stats, Version: sh.versions.version, Accepted: sh.versions.accepted,
		Samples: sh.versions.samples, Cur: sh.versions.cur, Changes: sh.cut.changes}
}

// Shards lists the IDs of this server's shards, ascending.
func (s *Server) Shards() []int32 { return s.owned }

// Stopping says whether workers are told to stop, for good or for a pause.
func (s *Server) Stopping() bool { return s.halt.stopping }

// Waiting says whether a scheme of this server holds back a pull or a grant.
func (s *Server) Waiting() bool {
	for _, id := range s.owned {
		if _, awaited := s.shards[id].turn(); awaited || s.shards[id].waiting() > 0 {
			return true
		}
	}
	return false
}

// Done says whether all workers have left and nothing is in flight. It becomes false when a worker comes back.
func (s *Server) Done() bool { return s.members.done }

// Me is this server's index.
func (s *Server) Me() int32 { return s.me }

// Slowest lists the workers of a shard that the others wait for, and their clock: the workers with the smallest clock
// where the shard holds pulls back, or the worker whose turn it is where others wait for theirs. It lists none if
// nobody waits.
func (s *Server) Slowest(id int32) (workers []int32, clock int64) {
	sh := s.shards[id]
	if w, awaited := sh.turn(); awaited {
		return []int32{w}, sh.peers[w].clock
	}
	if sh.waiting() == 0 {
		return nil, 0
	}
	for w := range sh.peers {
		if sh.peers[w].clock == sh.low {
			workers = append(workers, int32(w))
		}
	}
	return workers, sh.low
}
