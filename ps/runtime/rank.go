package runtime

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
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
	roles shard.Roles
	plan  *shard.Plan
	model workload.Model   // unbound: the architecture
	param []workload.Param // in model order, as in the plan
	set   *workload.Set
	dir   string
	log   *slog.Logger
	file  *os.File // of the log; may be nil

	server *serverSide // nil if this rank does not serve
	worker *workerSide // nil if this rank does not work
	lead   *lead       // rank 0 only

	ring          []*comm.Buf // buffers of the preposted control receives
	ringOps       []comm.Op
	closing       bool // completions of cancelled receives are expected
	open          int  // sends of headers that are not complete
	bytesSent     int64
	bytesReceived int64
	err           error       // the first failure inside a handler; ends every drive
	halted        atomic.Bool // a signal asked to stop; read by an evaluation on another goroutine
	snapsMax      int64       // snapshots of a shard kept at once
	over          bool        // all ranks agreed on the end: signals change nothing any more

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
	if err := r.t.Drive(func() bool { return r.err != nil || until() }); err != nil {
		return err
	}
	return r.err
}

// openRing preposts the receives of control messages. Each is reposted before its message is acted on.
func (r *rank) openRing() error {
	for i := range ringDepth(r.t.Size()) {
		b, err := r.t.Alloc(comm.CtlMax)
		if err != nil {
			return err
		}
		r.ring = append(r.ring, b)
		r.ringOps = append(r.ringOps, 0)
		r.post(i)
	}
	return nil
}

// ringDepth bounds the control messages that may be on their way to one rank without waiting in MPI's own queue.
func ringDepth(ranks int) int { return min(256, 8+4*ranks) }

func (r *rank) post(i int) {
	r.ringOps[i] = r.t.Irecv(comm.AnyPeer, comm.Ctl, 0, r.ring[i], 0, comm.CtlMax, func(d comm.Done) {
		if r.closing {
			r.ringOps[i] = 0
			return
		}
		if d.Err != nil {
			r.fail(fmt.Errorf("runtime: control message: %w", d.Err))
			return
		}
		h, err := wire.Decode(r.ring[i].Bytes()[:d.N])
		r.post(i)
		if err != nil {
			r.fail(fmt.Errorf("runtime: control message of rank %d: %w", d.Peer, err))
			return
		}
		if training(h.Kind) {
			r.bytesReceived += int64(d.N)
		}
		r.arrived(int(d.Peer), h)
	})
}

// closeRing takes the preposted receives back.
func (r *rank) closeRing() error {
	r.closing = true
	for _, op := range r.ringOps {
		r.t.Cancel(op)
	}
	err := r.drive(func() bool {
		for _, op := range r.ringOps {
			if op != 0 {
				return false
			}
		}
		return r.open == 0
	})
	for _, b := range r.ring {
		b.Free()
	}
	r.ring, r.ringOps = nil, nil
	return err
}

// arrived hands a control message to the node it is for.
func (r *rank) arrived(from int, h wire.Header) {
	switch h.Kind {
	case wire.Push, wire.Pull, wire.PushReady, wire.Taken, wire.Left, wire.Joined, wire.Closed:
		r.server.step(core.Input{Kind: core.Arrived, Msg: h})
	case wire.Reply, wire.Ack, wire.Grant, wire.Revoke, wire.Publish, wire.Ended, wire.Moved:
		r.worker.step(core.Input{Kind: core.Arrived, Msg: h})
	case wire.Snapshot:
		r.server.sendSnapshot(from, h)
	case wire.Ready:
		r.lead.ready(h.Iter)
	case wire.Looked:
		r.server.forget(h.Iter)
	case wire.Halt:
		r.lead.halt(fmt.Sprintf("stopped by a signal to %s", r.place(int(h.Worker))))
	default:
		r.fail(fmt.Errorf("runtime: control message of kind %d from rank %d", h.Kind, from))
	}
}

// send encodes a header and sends it; the buffer goes back to the pool when it has left.
func (r *rank) send(to int, h wire.Header) {
	b, err := r.t.Alloc(wire.Size)
	if err != nil {
		r.fail(err)
		return
	}
	wire.Encode(b.Bytes(), &h)
	if training(h.Kind) {
		r.bytesSent += wire.Size
	}
	r.open++
	r.t.Isend(comm.Peer(to), comm.Ctl, 0, b, 0, wire.Size, func(d comm.Done) {
		r.open--
		b.Free()
		r.fail(d.Err)
	})
}

// training tells the messages that are counted as traffic from those of evaluation, which may still be on
// their way when the counts are taken.
func training(k wire.Kind) bool { return k <= wire.Left || k >= wire.PushReady && k <= wire.Closed }

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
