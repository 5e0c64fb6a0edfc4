package runtime

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"fluentps/comm"
	"fluentps/comm/payload"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/core"
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

	live   *liveness // nil where the transport has no heartbeats
	gaveUp bool      // the run ends with CodeStall
	// awake is when this process went on after it was stopped, 0: it was not. No wait is longer than since then.
	awake time.Duration

	server *serverSide // nil if this rank does not serve
	worker *workerSide // nil if this rank does not work
	lead   *lead       // rank 0 only

	reduce    *allReduce      // nil unless baseline: allreduce
	scheduler *core.Scheduler // rank 0 only, with baseline: pslite
	releases  []core.Effect   // scratch for it

	ring          []*comm.Buf // buffers of the preposted control receives
	ringOps       []comm.Op
	until         func() bool      // what drive waits for
	holds         func() bool      // that, or a failure: made once
	closing       bool             // completions of cancelled receives are expected
	frames        frames           // control messages that are filled or on their way
	open          int              // of these, on their way
	push, pull    payload.Codec    // of pushes and replies; nil: they travel as they are
	plain         payload.Codec    // of the statistics among them
	keyed         []*payload.Keyed // by piece, where messages have lists of keys: in place of push and pull, of statistics too
	inline        []bool           // by piece: that of a push travels in frames
	inlineReply   []bool           // the same of replies
	shared        shared
	bytesSent     int64
	bytesBetween  int64 // of these, to other hosts
	bytesReceived int64
	bytesShared   int64       // read in the memory of others, in place of receiving it
	err           error       // the first failure inside a handler; ends every drive
	halted        atomic.Bool // a signal asked to stop; read by an evaluation on another goroutine
	hurried       atomic.Bool // and a second one to leave without a checkpoint
	snapsMax      int64       // snapshots of a shard kept at once
	over          bool        // how the run ended is decided, on rank 0 first: signals and time change nothing any more

	trainStart, trainEnd time.Duration
	cpuStart, cpuEnd     time.Duration // of this process
	setupEnd             time.Time
}

// fail keeps the first failure that a handler met.
func (r *rank) fail(err error) {
	if err != nil && r.err == nil {
		r.err = err
	}
}

// drive waits for a condition, a failure, or the end of the world.
func (r *rank) drive(until func() bool) error {
	if r.holds == nil {
		r.holds = func() bool { return r.err != nil || r.until() }
	}
	r.until = until
	if err := r.t.Drive(r.holds); err != nil {
		return err
	}
	return r.err
}

// openRing preposts the receives of control messages. Each is reposted when its message was acted on, which never
// waits; meanwhile the others take what comes.
func (r *rank) openRing() error {
	r.frames = frames{r: r, open: make([]*frame, r.t.Size()), apart: r.cfg != nil && r.cfg.InRounds()}
	for i := range ringDepth(r.t.Size()) {
		b, err := r.t.Alloc(comm.CtlMax)
		if err != nil {
			return err
		}
		r.ring = append(r.ring, b)
		r.ringOps = append(r.ringOps, 0)
		frame := b.Bytes()
		var came comm.Handler
		came = func(d comm.Done) {
			if r.closing {
				r.ringOps[i] = 0
				return
			}
			if d.Err != nil {
				r.fail(fmt.Errorf("runtime: control message: %w", d.Err))
				return
			}
			r.read(int(d.Peer), frame[:d.N])
			r.ringOps[i] = r.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, came)
		}
		r.ringOps[i] = r.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, came)
	}
	return nil
}

// ringDepth bounds the control messages that may be on their way to one rank without waiting in MPI's own queue.
func ringDepth(ranks int) int { return min(256, 8+4*ranks) }

// read acts on the records of a frame in their order, and answers them together.
func (r *rank) read(from int, frame []byte) {
	r.begin()
	defer r.end()
	for {
		m, rest, err := wire.Next(frame)
		if err != nil {
			r.fail(fmt.Errorf("runtime: control message of rank %d: %w", from, err))
			return
		}
		if training(m.Kind) {
			r.bytesReceived += int64(m.Size)
		}
		r.arrived(from, &m)
		if frame = rest; len(frame) == 0 {
			return
		}
	}
}

// closeRing takes the preposted receives back.
func (r *rank) closeRing() error {
	r.closing = true
	for _, op := range r.ringOps {
		r.t.Cancel(op)
	}
	if r.server != nil {
		r.server.closeAhead()
	}
	err := r.drive(func() bool {
		for _, op := range r.ringOps {
			if op != 0 {
				return false
			}
		}
		return r.open == 0 && (r.server == nil || r.server.posted == 0)
	})
	for _, b := range r.ring {
		b.Free()
	}
	r.ring, r.ringOps = nil, nil
	r.frames.close()
	return err
}

// arrived hands a header or a piece to the node it is for.
func (r *rank) arrived(from int, m *wire.Record) {
	h := &m.Header
	switch h.Kind {
	case wire.Push, wire.Pull, wire.PushReady, wire.Taken, wire.Left, wire.Joined, wire.Closed:
		if h.Kind == wire.Pull && r.keyed != nil {
			r.server.keysAsked(h)
			return
		}
		r.server.step(core.Input{Kind: core.Arrived, Msg: *h})
	case wire.Reply, wire.Ack, wire.Grant, wire.Revoke, wire.Publish, wire.Ended, wire.Moved, wire.Release:
		r.worker.step(core.Input{Kind: core.Arrived, Msg: *h})
	case wire.Task, wire.Readable:
		r.worker.member.came(from, h)
	case wire.Forwarded, wire.Summand:
		r.worker.lead.came(from, h)
	case wire.PushPiece, wire.ReplyPiece:
		if !r.mayBeInline(h.Kind, m.Piece, len(m.Data)) {
			r.fail(fmt.Errorf("runtime: control message of rank %d: %v %d of %d bytes is not one of the plan", from, m.Kind, m.Piece, len(m.Data)))
			return
		}
		if m.Kind == wire.PushPiece {
			r.server.inlineCame(from, m.Piece, m.Data)
		} else {
			r.worker.inlineCame(m.Piece, m.Data)
		}
	case wire.PieceThere:
		r.server.pieceThere(from, m.Piece)
	case wire.Snapshot:
		r.keeper().sendSnapshot(from, *h)
	case wire.Ready:
		r.lead.ready(h.Iter)
	case wire.Looked:
		r.keeper().forget(h.Iter)
	case wire.Saved:
		r.lead.fileSaved(h)
	case wire.Stale:
		r.lead.staleHeard(h)
	case wire.Barrier:
		r.atBarrier(*h)
	case wire.Halt:
		r.lead.cutShort("a signal to " + r.place(int(h.Worker)))
		if h.Part > 0 {
			r.lead.hurry()
		}
	default:
		r.fail(fmt.Errorf("runtime: control message of kind %d from rank %d", h.Kind, from))
	}
}

// training tells the messages that are counted as traffic from those of evaluation, checkpoints and metrics, which may still be
// on their way when the counts are taken.
func training(k wire.Kind) bool {
	return k <= wire.Left || k >= wire.PushReady && k != wire.Saved && k != wire.Stale
}

// sent counts bytes of training.
func (r *rank) sent(to, n int) {
	r.bytesSent += int64(n)
	if r.hosts[to] != r.hosts[r.me] {
		r.bytesBetween += int64(n)
	}
}

// whole says whether a receive took all the bytes that it was posted for, and fails the run if not.
func (r *rank) whole(d comm.Done, n int, what string, args ...any) bool {
	switch {
	case d.Err != nil:
		r.fail(fmt.Errorf("runtime: "+what+": %w", append(args, d.Err)...))
	case d.N != n:
		r.fail(fmt.Errorf("runtime: "+what+": %d bytes of %d from rank %d", append(args, d.N, n, d.Peer)...))
	default:
		return true
	}
	return false
}

// serverRank is the rank of the server that owns a shard.
func (r *rank) serverRank(id int32) int { return r.roles.Servers[r.plan.Shards[id].Server] }

// at is a piece's place in an arena, in bytes.
func at(p shard.Piece) (off, n int) { return p.Lo * shard.ElemBytes, (p.Hi - p.Lo) * shard.ElemBytes }
