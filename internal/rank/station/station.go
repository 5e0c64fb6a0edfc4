// Package station is the state of one rank that its rooms share: its link, the results of setup, and its shared memory.
package station

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/kernels"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/external"
)

// BeatEvery is how often a rank looks at the clock while nothing else happens.
const BeatEvery = 100 * time.Millisecond

// Station is one rank of the world. It is complete before a side is made, except for the time when training began and
// for Saving. Its fields belong to the goroutine that drives the transport; while the rank trains, that is the
// goroutine that holds Mu (internal/rank/train/site.go).
type Station struct {
	Mu    sync.Mutex
	Ended chan struct{} // closed when training has ended or has failed
	Guard func()        // deferred by every goroutine: a panic ends all ranks

	Transport comm.Transport
	Net       *link.Link
	Log       *slog.Logger
	Config    *configs.Config

	Me    int
	Hosts []string // of every rank
	// NodeOf is, by rank, the first rank that shares memory with it.
	NodeOf []int
	Link   layout.Link // between the hosts
	Roles  shard.Roles
	Plan   *shard.Plan
	// WorkerOf is, by rank, its index among the workers, or -1.
	WorkerOf     []int32
	Model        Model
	Set          *dataset.Set
	Routes       *layout.Routes // of all pieces
	SnapshotsMax int64          // snapshots of a shard kept at once
	Axes         Axes           // options without a configuration key: no run sets any yet

	Team   *comm.Window // window of the ranks of a host that compute as one worker
	Shared Shared

	Saving Saving

	Began  time.Duration // when training began, on rank 0's clock, so one instant for all ranks; 0: not yet
	Before time.Duration // training time of the earlier parts of the run
}

// Model is what a rank knows of the model.
type Model struct {
	Architecture *workload.Architecture
	Initial      workload.Initial // what parameters begin with; nil: what follows from the seed
	Child        *external.Child  // computes on this rank, if the model is external; else nil
}

// Axes are options of nodes that no key of the configuration sets.
type Axes = build.Axes

// Cut cuts the parameters into shards, and sets Architecture, Plan, SnapshotsMax and WorkerOf. It returns the memory of all ranks.
func (s *Station) Cut() (*layout.Ledger, error) {
	q, err := layout.Prepare(s.Config, s.Roles, s.Hosts, s.Set, s.Link)
	if err != nil {
		return nil, err
	}
	s.Model.Architecture, s.Plan, s.SnapshotsMax = q.Architecture, q.Plan, q.Ledger.Snapshots
	if s.Plan.Windows != nil { // they bound what is on the way
		s.Net.MatchBulk()
	}
	s.WorkerOf = make([]int32, s.Transport.Size())
	for rank := range s.WorkerOf {
		s.WorkerOf[rank] = -1
	}
	for w, rank := range s.Roles.Workers {
		s.WorkerOf[rank] = int32(w)
	}
	return q.Ledger, nil
}

// Build returns the maker of nodes and stores.
func (s *Station) Build() *build.Run {
	return &build.Run{Config: s.Config, Plan: s.Plan, Roles: s.Roles, Hosts: s.Hosts, Rows: s.Set.Train.Rows(),
		Axes: s.Axes, Initial: s.Model.Initial}
}

// NewModel makes a model for batches of up to batchMax samples, unbound: one that trains, or one that evaluates.
func (s *Station) NewModel(dev kernels.Device, batchMax int, evaluates bool) (workload.Model, error) {
	spec := s.Config.ModelSpec()
	spec.Child, spec.Evaluates = s.Model.Child, evaluates
	return workload.NewModel(spec, s.Set.Samples(), dev, batchMax)
}

// Room allocates bytes for what a model is bound to, where the model has it without a copy.
func (s *Station) Room(m workload.Model, bytes int) (b *comm.Buf, isOurs bool, err error) {
	if h, is := m.(workload.Housed); is {
		mem, err := h.Room(bytes)
		if err != nil {
			return nil, false, err
		}
		return comm.NewSegment(mem), false, nil
	}
	b, err = s.Transport.Alloc(bytes)
	return b, true, err
}

// LendWindow lets a model use this rank's segment of the shared window in place, where it is a file.
func (s *Station) LendWindow(m workload.Model) error {
	h, is := m.(workload.Housed)
	if f := s.Shared.Window.File(); is && f != nil {
		return h.Lend(f, s.Shared.Window.Of(comm.Peer(s.Me)).Bytes())
	}
	return nil
}

// Evaluators are the ranks that can compute a loss, in order.
func (s *Station) Evaluators() (ranks []int) {
	if workload.IsExternal(s.Config.Model.Name) {
		return slices.Sorted(slices.Values(s.Roles.Computing()))
	}
	for rank := range s.Transport.Size() {
		ranks = append(ranks, rank)
	}
	return ranks
}

// ServerRank returns the rank of the server that owns a shard.
func (s *Station) ServerRank(id int32) int { return s.Roles.Servers[s.Plan.Shards[id].Server] }

// Now returns the time of training, earlier parts of the run included. Within a batch the clock is not always read
// again.
func (s *Station) Now() time.Duration { return s.Net.Clock() - s.Began + s.Before }

// Shared is the memory that this rank shares with others of its host.
type Shared struct {
	Window   *comm.Window // nil: none
	Segments *layout.Segments
}

// Saving counts the checkpoint files that a rank writes while training continues.
type Saving struct {
	Open int   // files being written
	Told int64 // files reported to rank 0
}

// FileWriter writes a file of a checkpoint while training continues, and calls written when the vectors may be
// overwritten.
type FileWriter func(f wire.FileSaved, state any, vectors [][]float32, written func())

// TellSaved reports a file to rank 0.
func (s *Station) TellSaved(f *wire.FileSaved) {
	h := f.Header()
	s.Net.Send(0, &h)
}

// Version returns a version buffer of a shard in its server's segment.
func (s *Station) Version(sh *shard.Shard, buf int32) []byte {
	off, n := s.Shared.Segments.Version(sh, buf)
	return s.Shared.Window.Of(comm.Peer(s.Roles.Servers[sh.Server])).Bytes()[off : off+n]
}

// Gradients returns the gradient arena of a rank's worker in the rank's segment.
func (s *Station) Gradients(rank int) *comm.Buf {
	off, n := s.Shared.Segments.Gradients(rank)
	return comm.NewSegment(s.Shared.Window.Of(comm.Peer(rank)).Bytes()[off : off+n])
}

// Accepts returns yes. If yes is false, it fails the run: the plan has no such piece for this rank.
func (s *Station) Accepts(from int, m *wire.Record, yes bool) bool {
	if !yes {
		s.Net.Fail(fmt.Errorf("station: control message of rank %d: %v %d of %d bytes is not in the plan",
			from, m.Kind, m.Piece, len(m.Data)))
	}
	return yes
}

// Keepers returns the ranks that hold the versions of the parameters, by server. Without servers that is rank 0.
func (s *Station) Keepers() []int {
	if layout.Reduces(s.Config) {
		return []int{0}
	}
	return s.Roles.Servers
}
