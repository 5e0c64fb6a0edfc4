package runtime

import (
	"errors"
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/shard"
)

// Ranks of one host share a window (ps/core/near.go has the protocol): a server's segment holds the versions of its shards, a
// worker's segment, behind those, its gradient arena. What lies where follows from the plan.

// shared is the memory that this rank shares with others of its host.
type shared struct {
	window   *comm.Window // nil: none
	segments *layout.Segments
}

// share decides the routes of pieces, and makes the window that they need. Where one rank has no room for its segment, all
// send messages.
func (r *rank) share() error {
	r.routes = layout.NewRoutes(r.cfg, r.plan, r.roles, r.nodeOf, r.o.at)
	if !slices.Contains(r.routes.SharedShards(), true) {
		return nil
	}
	segments := r.routes.Segments()
	window, err := r.t.Shared(segments.Bytes(r.me, func(rank int) bool { return r.nodeOf[rank] == r.nodeOf[r.me] }))
	if errors.Is(err, comm.ErrNoMemory) {
		if r.me == 0 {
			r.log.Warn("no shared memory: ranks of one host send messages to each other, which is slower; mend what the error says, or set cluster.shared_memory: off", "error", err)
		}
		r.routes = r.routes.ByMessages()
		return nil
	}
	r.shared = shared{window, segments}
	return err
}

// unshare gives the window up; all ranks do.
func (r *rank) unshare() error {
	if r.shared.window == nil {
		return nil
	}
	w := r.shared.window
	r.shared.window = nil
	return w.Free()
}

// version is a buffer of a shard in its server's segment.
func (r *rank) version(sh *shard.Shard, buf int32) []byte {
	off, n := r.shared.segments.Version(sh, buf)
	return r.shared.window.Of(comm.Peer(r.roles.Servers[sh.Server])).Bytes()[off : off+n]
}

// gradients is the arena of the worker of a rank in its segment.
func (r *rank) gradients(rank int) *comm.Buf {
	off, n := r.shared.segments.Gradients(rank)
	return comm.NewSegment(r.shared.window.Of(comm.Peer(rank)).Bytes()[off : off+n])
}

// memoryOf takes the memory of a shard's versions: all in shared memory, or the first.
func (r *rank) memoryOf(st *store) (err error) {
	for w, rank := range r.roles.Workers {
		st.near = st.near || r.routes.Shares(st.sh.ID, int32(w))
		if r.routes.Lends(st.sh.ID, int32(w)) {
			st.grads[w] = r.gradients(rank).F32()[st.sh.Lo:st.sh.Hi]
		}
	}
	if !st.near {
		st.bufs[0], err = r.t.Alloc(int(st.sh.Bytes()))
		return err
	}
	for i := range st.bufs {
		st.bufs[i] = comm.NewSegment(r.version(st.sh, int32(i)))
	}
	return nil
}

// takeGradients takes the gradient arena, of so many bytes: in shared memory where a server reads it.
func (w *workerSide) takeGradients(n int) (err error) {
	for s := range w.r.plan.Shards {
		if w.r.routes.Shares(int32(s), int32(w.me)) {
			w.grads = w.r.gradients(w.r.me)
			return nil
		}
	}
	w.grads, err = w.alloc(n)
	return err
}

// slot is a staged push.
type slot struct {
	own  *comm.Buf // nil until used
	push []float32 // where it is: in own, or in its worker's memory
	of   int32     // that worker, or -1
}

// stageThere notes a push that stays where it is.
func (s *serverSide) stageThere(e *core.Effect) {
	st := s.stores[e.Shard]
	st.slots[e.Slot].push, st.slots[e.Slot].of = st.grads[e.To], e.To
	st.in[e.To] = arrival{slot: e.Slot, open: int32(len(st.sh.Pieces)), samples: e.Samples}
}

// pieceThere takes a piece of a push that stays where it is; the header went before.
func (s *serverSide) pieceThere(from int, piece int32) {
	p := &s.r.plan.Pieces[piece]
	st, w := s.stores[p.Shard], s.r.workerOf[from]
	if st.grads[w] == nil || st.in[w].open == 0 {
		s.r.net.Fail(fmt.Errorf("runtime: rank %d says that piece %d is there, and no such push is on its way", from, piece))
		return
	}
	s.r.net.Traffic.Shared += p.Bytes()
	s.pieceLanded(st, piece, w)
}

// ownPush copies a push out of its worker's memory.
func (s *serverSide) ownPush(e *core.Effect) {
	st := s.stores[e.Shard]
	to := &st.slots[e.Slot]
	s.folding()
	from := to.push
	if s.ownMemory(st, to) {
		copy(to.push, from)
	}
}

// ownMemory gives a slot the server's own memory, which nothing has to be read of any more.
func (s *serverSide) ownMemory(st *store, to *slot) bool {
	if slices.Contains(st.lent, to.own) {
		s.folding()
		st.flush()
	}
	if to.own == nil {
		b, err := s.r.t.Alloc(int(st.sh.Bytes()))
		if err != nil {
			s.r.net.Fail(err)
			return false
		}
		to.own = b
	}
	to.push, to.of = to.own.F32(), -1
	return true
}

// replyNear says which version it is, and that the worker may write its gradients again.
func (s *serverSide) replyNear(e *core.Effect) {
	st := s.stores[e.Shard]
	if st.borrows[e.To] {
		s.folding()
		st.flush()
		s.folded()
	}
	s.r.net.Send(s.r.roles.Workers[e.To], &e.Msg)
}

// readVersion copies a version from the server's memory to the parameters.
func (w *workerSide) readVersion(e *core.Effect) {
	sh := &w.r.plan.Shards[e.Shard]
	lo := sh.Lo * shard.ElemBytes
	n := copy(w.params.Bytes()[lo:], w.r.version(sh, e.Src))
	w.r.net.Traffic.Shared += int64(n)
}
