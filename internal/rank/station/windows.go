package station

import (
	"errors"
	"fmt"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
)

// Ranks of one host share a window (the protocol is in internal/core/servernode/near.go): a server's segment holds the versions of its
// shards, a worker's segment, behind those, its gradient arena. The offsets follow from the plan.

// Share decides the routes of pieces, and creates the window that they need. If one rank has no memory for its segment,
// all ranks send messages instead.
func (s *Station) Share(at layout.Thresholds) error {
	s.Routes = layout.NewRoutes(s.Config, s.Plan, s.Roles, s.NodeOf, at)
	if err := s.fits(); err != nil { // the names of hosts need not tell which ranks share memory
		return err
	}
	if !slices.Contains(s.Routes.SharedShards(), true) {
		return nil
	}
	segments := s.Routes.Segments()
	window, err := s.Transport.Shared(segments.Bytes(s.Me, func(rank int) bool { return s.NodeOf[rank] == s.NodeOf[s.Me] }))
	if errors.Is(err, comm.ErrNoMemory) {
		if s.Me == 0 {
			s.Log.Warn(
				"no shared memory: ranks of one host send messages to each other, which is slower; fix the cause of the error, "+
					"or set cluster.shared_memory: off",
				"error", err)
		}
		s.Routes = s.Routes.ByMessages()
		return s.fits()
	}
	s.Shared = Shared{Window: window, Segments: segments}
	return err
}

// fits returns a usage error, the same on all ranks, if a rank may need too much memory on the ways that its pieces go.
func (s *Station) fits() error {
	if _, err := layout.NewLedger(s.Routes, s.Hosts, s.Set); err != nil {
		return Usage("%v", err)
	}
	return nil
}

// Unshare frees the window; all ranks call it.
func (s *Station) Unshare() error {
	if s.Shared.Window == nil {
		return nil
	}
	w := s.Shared.Window
	s.Shared.Window = nil
	return w.Free()
}

// SameNodes returns a usage error, the same on all ranks, unless the ranks with the same host name are those that share
// memory.
func (s *Station) SameNodes() error {
	first := map[string]int{}
	for rank, host := range s.Hosts {
		if _, seen := first[host]; !seen {
			first[host] = rank
		}
		if a, b := first[host], s.NodeOf[rank]; a != b {
			return Usage("cluster.hierarchy: node needs hosts whose ranks share memory, and host names do not tell which: "+
				"%s has the name of rank %d's host, but shares memory with %s; "+
				"give every host a name of its own and each rank its host's, let the launcher start all ranks of a host "+
				"together, or set cluster.hierarchy: none", s.Net.Place(rank), a, s.Net.Place(b))
		}
	}
	return nil
}

// OpenTeam creates the memory that the ranks of a host share. All ranks of the world call it.
func (s *Station) OpenTeam() error {
	if !layout.Teams(s.Config) {
		return nil
	}
	bytes := 0
	if lead := s.Roles.Leader(s.Me); lead >= 0 && len(s.Roles.Team(lead)) > 1 {
		bytes = s.Plan.Arena * shard.ElemBytes
	}
	w, err := s.Transport.Shared(bytes)
	if errors.Is(err, comm.ErrNoMemory) { // all ranks get this error
		return &ExitError{Code: CodeFailed, Text: fmt.Sprintf("cluster.hierarchy: %v", err)}
	}
	s.Team = w
	return err
}
