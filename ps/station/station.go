// Package station is one rank of a run as its rooms see it: its link, what setup has found out, and the memory that it shares.
package station

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// BeatEvery is how often a rank looks at the clock when nothing else happens.
const BeatEvery = 100 * time.Millisecond

// Station is one rank of the world as its rooms see it: the link, and what setup has found out. It is complete before a side is
// made, but for when training began and what is being saved. Its fields belong to the goroutine that drives the transport; while the
// rank trains that is who holds Mu (ps/train/site.go).
type Station struct {
	Mu    sync.Mutex
	Ended chan struct{} // closed when training is over or has failed
	Guard func()        // deferred by every goroutine: a panic ends all ranks

	Transport comm.Transport
	Net       *link.Link
	Log       *slog.Logger
	Config    *configs.Config

	Me    int
	Hosts []string // of every rank
	// NodeOf is, by rank, the first rank that shares memory with it.
	NodeOf []int
	Roles  shard.Roles
	Plan   *shard.Plan
	// WorkerOf is, by rank, its index among the workers, or -1.
	WorkerOf     []int32
	Computes     []int            // ranks that compute gradients, in the order in which samples are dealt to them
	Params       []workload.Param // in model order, as in the plan
	Set          *workload.Set
	Routes       *layout.Routes // of all pieces
	SnapshotsMax int64          // snapshots of a shard kept at once
	Axes         Axes           // doors: no run has any yet

	Team   *comm.Window // of the ranks of a host, where they compute as one worker
	Shared Shared

	Saving Saving

	Began  time.Duration // when training began, on the transport's clock; 0: not yet
	Before time.Duration // training in the parts of the run before this one
}

// Axes are what nodes are made with and no key of the configuration names.
type Axes = build.Axes

// Cut cuts the shards.
func (s *Station) Cut() error {
	q, err := layout.Prepare(s.Config, s.Roles, s.Set)
	if err != nil {
		return err
	}
	s.Params, s.Plan, s.SnapshotsMax = q.Params, q.Plan, q.Snapshots
	s.WorkerOf = make([]int32, s.Transport.Size())
	for rank := range s.WorkerOf {
		s.WorkerOf[rank] = -1
	}
	for w, rank := range s.Roles.Workers {
		s.WorkerOf[rank] = int32(w)
	}
	return nil
}

// Build makes nodes and stores.
func (s *Station) Build() *build.Run {
	return &build.Run{Config: s.Config, Plan: s.Plan, Roles: s.Roles, Rows: s.Set.Train.Rows(), Axes: s.Axes}
}

// ServerRank is the rank of the server that owns a shard.
func (s *Station) ServerRank(id int32) int { return s.Roles.Servers[s.Plan.Shards[id].Server] }

// Now is the time of training, with that of the parts of the run before this one; within a batch it is not always looked at again.
func (s *Station) Now() time.Duration { return s.Net.Clock() - s.Began + s.Before }

// Shared is the memory that this rank shares with others of its host.
type Shared struct {
	Window   *comm.Window // nil: none
	Segments *layout.Segments
}

// Saving counts the files of checkpoints that a rank writes while training goes on.
type Saving struct {
	Open int   // files that are being written
	Told int64 // files that rank 0 was told of
}

// FileWriter writes a file of a checkpoint while training goes on, and calls written when the vectors are free again.
type FileWriter func(f wire.FileSaved, state any, vectors [][]float32, written func())

// TellSaved tells rank 0 of a file.
func (s *Station) TellSaved(f *wire.FileSaved) {
	h := f.Header()
	s.Net.Send(0, &h)
}

// Version is a buffer of a shard in its server's segment.
func (s *Station) Version(sh *shard.Shard, buf int32) []byte {
	off, n := s.Shared.Segments.Version(sh, buf)
	return s.Shared.Window.Of(comm.Peer(s.Roles.Servers[sh.Server])).Bytes()[off : off+n]
}

// Gradients is the arena of the worker of a rank in its segment.
func (s *Station) Gradients(rank int) *comm.Buf {
	off, n := s.Shared.Segments.Gradients(rank)
	return comm.NewSegment(s.Shared.Window.Of(comm.Peer(rank)).Bytes()[off : off+n])
}

// Accepts fails the run where a piece in a frame is not one that this rank receives.
func (s *Station) Accepts(from int, m *wire.Record, yes bool) bool {
	if !yes {
		s.Net.Fail(fmt.Errorf("station: control message of rank %d: %v %d of %d bytes is not one of the plan", from, m.Kind, m.Piece, len(m.Data)))
	}
	return yes
}

// Keepers are the ranks that have the versions of the plan's servers, by server. Without servers rank 0 has all.
func (s *Station) Keepers() []int {
	if layout.Reduces(s.Config) {
		return []int{0}
	}
	return s.Roles.Servers
}
