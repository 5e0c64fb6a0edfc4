package runtime

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/liveness"
	"fluentps/ps/lock"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// rank is one process or goroutine of the world: a server, a worker, or both. Its fields belong to the
// goroutine that drives the transport; while it trains that is who holds mu (site.go).
type rank struct {
	mu    sync.Mutex
	ended chan struct{} // closed when training is over or has failed

	o     Options
	t     comm.Transport
	cfg   *configs.Config
	me    int
	hosts []string // of every rank
	pids  []int
	// nodeOf is, by rank, the first rank that shares memory with it.
	nodeOf []int
	roles  shard.Roles
	plan   *shard.Plan
	// workerOf is, by rank, its index among the workers, or -1.
	workerOf []int32
	computes []int            // ranks that compute gradients, in the order in which samples are dealt to them
	window   *comm.Window     // of the ranks of a host, where they compute as one worker
	model    workload.Model   // unbound: the architecture
	param    []workload.Param // in model order, as in the plan
	set      *workload.Set
	dir      string             // of the run, "" without one
	folder   *metrics.RunFolder // the same, open; nil without one
	log      *slog.Logger

	from       *origin       // what the run goes on from; nil: it begins
	before     time.Duration // training in the parts of the run before this one
	candidates []string      // rank 0 only: folders of checkpoints that were not tried, the newest first
	saving     saving
	replicas   *replicas  // of checkpoints, in memory; nil: none
	earlier    []string   // rank 0 only: starts of this run that may have left replicas
	adopted    string     // the start whose replicas the run goes on from
	again      bool       // rank 0 only: the folder is that of a run which left no checkpoint
	lock       *lock.Lock // rank 0 only: of the folder, if there is one

	file *os.File // of the log; may be nil

	unit    Unit           // what it computes on; none of a rank that does not
	reached kernels.Placer // that, where MPI reaches its memory; else nil
	units   []unitReport   // rank 0 only: those of all ranks

	live   *liveness.Liveness // nil where the transport has no heartbeats
	gaveUp bool               // the run ends with CodeStall
	// awake is when this process went on after it was stopped, 0: it was not. No wait is longer than since then.
	awake time.Duration

	server *serverSide // nil if this rank does not serve
	worker *workerSide // nil if this rank does not work
	lead   *lead       // rank 0 only

	reduce    *allReduce      // nil unless baseline: allreduce
	scheduler *core.Scheduler // rank 0 only, with baseline: pslite
	releases  []core.Effect   // scratch for it

	net      *link.Link
	routes   *layout.Routes // of all pieces
	shared   shared
	halted   atomic.Bool // a signal asked to stop; read by an evaluation on another goroutine
	hurried  atomic.Bool // and a second one to leave without a checkpoint
	snapsMax int64       // snapshots of a shard kept at once
	over     bool        // how the run ended is decided, on rank 0 first: signals and time change nothing any more

	trainStart, trainEnd time.Duration
	cpuStart, cpuEnd     time.Duration // of this process
	setupEnd             time.Time
}

// build makes nodes and stores.
func (r *rank) build() *build.Run {
	return &build.Run{Config: r.cfg, Plan: r.plan, Roles: r.roles, Rows: r.set.Train.Rows()}
}

// serverRank is the rank of the server that owns a shard.
func (r *rank) serverRank(id int32) int { return r.roles.Servers[r.plan.Shards[id].Server] }

// at is a piece's place in an arena, in bytes.
func at(p shard.Piece) (off, n int) { return p.Lo * shard.ElemBytes, (p.Hi - p.Lo) * shard.ElemBytes }
