package serve

import (
	"fmt"
	"time"

	"fluentps/internal/show/status"
)

// explain names, for each shard that delays pulls, the workers at the smallest clock: the shard waits for them.
func (s *Side) explain(silent time.Duration) string {
	text := fmt.Sprintf("server %d has heard nothing for %s", s.node.Me(), silent.Round(time.Second))
	for _, id := range s.node.Shards() {
		slowest, clock := s.node.Slowest(id)
		if len(slowest) == 0 {
			continue
		}
		sh := &s.station.Plan.Shards[id]
		text += fmt.Sprintf("; shard %d %s (%s) waits for", id, sh.Name, s.station.Config.Sync[sh.Rule].Schemes())
		for i, w := range slowest {
			if i == 4 {
				text += fmt.Sprintf(" and %d more", len(slowest)-i)
				break
			}
			text += fmt.Sprintf(" worker %d (%s)", w, s.station.Net.Place(s.station.Roles.Workers[w]))
		}
		text += fmt.Sprintf(": no push of iteration %d", clock)
		for _, w := range slowest[:min(4, len(slowest))] {
			if parts := s.node.Parts(id, w); parts != "" {
				text += fmt.Sprintf("; of worker %d %s", w, parts)
			}
		}
	}
	return text
}

// Stalled names the workers that the server waits for, if it has heard nothing for at least warn and has not said so yet;
// else "". Silence counts from awake at the earliest, in training time.
func (s *Side) Stalled(warn, awake time.Duration) string {
	if s.done || s.warned || !s.node.Waiting() {
		return ""
	}
	silent := s.station.Now() - max(s.lastInput, awake)
	if warn <= 0 || silent < warn {
		return ""
	}
	s.warned = true
	return s.explain(silent)
}

// WaitsFor names the workers that the server waits for, however short the wait; "" if none.
func (s *Side) WaitsFor() string {
	if s.done || !s.node.Waiting() {
		return ""
	}
	return s.explain(s.station.Now() - s.lastInput)
}

// Status is what the server does now.
func (s *Side) Status() *status.Server {
	of := &status.Server{Name: fmt.Sprintf("s%d", s.node.Me()), Server: s.node.Me(), Done: s.done,
		SilentS: (s.station.Now() - s.lastInput).Seconds()}
	for _, id := range s.node.Shards() {
		of.Versions += s.node.Shard(id).Version
		if slowest, clock := s.node.Slowest(id); len(slowest) > 0 {
			of.Held = append(of.Held, status.Held{Shard: id, For: slowest, Iteration: clock})
		}
	}
	return of
}

// Text describes the state of the server.
func (s *Side) Text() string { return s.node.String() }

// Stopping says that the server has decided to end training.
func (s *Side) Stopping() bool { return s.node.Stopping() }

// Spent says that the budget is used up.
func (s *Side) Spent() bool { return s.node.Spent() }

// Shards is the number of shards that the server owns.
func (s *Side) Shards() int { return len(s.node.Shards()) }

// Over says that the server has nothing left to do.
func (s *Side) Over() bool { return s.done }
