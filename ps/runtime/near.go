package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// Ranks of one host share a window (ps/core/near.go has the protocol): a server's segment holds the versions of its shards, a
// worker's segment, behind those, its gradient arena. What lies where follows from the plan.

// nearMin is the size from which a shard goes through shared memory, in bytes. A smaller one is in the frame that must be
// sent anyway, which was measured to be as fast up to here.
const nearMin = 1024

// segmentAlign keeps what different ranks write out of one cache line.
const segmentAlign = 64

// shared is the memory that this rank shares with others of its host.
type shared struct {
	window *comm.Window
	shards []bool // by shard: it may go through shared memory
	at     []int  // by shard: where its versions begin in its server's segment, in bytes
	end    []int  // by server: where they end
}

// nearShards says which shards go through shared memory where a server and a worker have it: those of at least so many bytes.
// A scheme that schedules the server's link has its pushes sent on it, and what is encoded is sent, so that it has the same
// values on all ways.
func nearShards(c *configs.Config, p *shard.Plan, least int64) []bool {
	near := make([]bool, len(p.Shards))
	push, pull := c.Payload.Encoded()
	if c.Cluster.SharedMemory == configs.SharedOff || c.Baseline != configs.BaselineNone || push || pull {
		return near
	}
	for i := range p.Shards {
		near[i] = p.Shards[i].Bytes() >= least && !core.Scheduled(c.Sync[p.Shards[i].Rule].Scheme)
	}
	return near
}

func aligned(n int) int { return (n + segmentAlign - 1) / segmentAlign * segmentAlign }

// segments lays out the versions of each shard: so many buffers.
func segments(p *shard.Plan, near []bool, versions int) (at, end []int) {
	at, end = make([]int, len(p.Shards)), make([]int, p.Servers)
	for i := range p.Shards {
		if sh := &p.Shards[i]; near[i] {
			at[i] = end[sh.Server]
			end[sh.Server] += versions * aligned(int(sh.Bytes()))
		}
	}
	return at, end
}

// segmentBytes is what a rank puts into the window, given who is on its host: its versions where a worker is, and its
// gradients where a server of such shards is.
func segmentBytes(p *shard.Plan, roles shard.Roles, end []int, rank int, here func(rank int) bool) (versions, grads int) {
	if m := roles.Server(rank); m >= 0 && slices.ContainsFunc(roles.Workers, here) {
		versions = end[m]
	}
	for m, server := range roles.Servers {
		if roles.Worker(rank) >= 0 && end[m] > 0 && here(server) {
			grads = p.Arena * shard.ElemBytes
		}
	}
	return versions, grads
}

// share makes the window. Where one rank has no room for its segment, all send messages.
func (r *rank) share() error {
	s := &r.shared
	s.shards = nearShards(r.cfg, r.plan, r.o.nearLeast())
	if !slices.Contains(s.shards, true) {
		return nil
	}
	s.at, s.end = segments(r.plan, s.shards, versionsOf(r.cfg, len(r.roles.Workers)))
	peers := r.t.NodePeers()
	versions, grads := segmentBytes(r.plan, r.roles, s.end, r.me, func(rank int) bool { return slices.Contains(peers, comm.Peer(rank)) })
	window, err := r.t.Shared(versions + grads)
	if errors.Is(err, comm.ErrNoMemory) {
		if r.me == 0 {
			r.log.Warn("no shared memory: ranks of one host send messages to each other, which is slower; enlarge /dev/shm, or set cluster.shared_memory: off", "error", err)
		}
		return nil
	}
	s.window = window
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

func (o *Options) nearLeast() int64 {
	if o.nearMin != 0 {
		return o.nearMin
	}
	return nearMin
}

// near says whether a shard goes through memory that is shared with a rank, its server or one of the workers.
func (r *rank) near(shard int32, with int) bool {
	s := &r.shared
	return s.window != nil && s.shards[shard] && s.window.Of(comm.Peer(with)) != nil
}

// nearServer is near with the shard's server. With baseline: allreduce there is none.
func (r *rank) nearServer(id int32) bool {
	return r.shared.window != nil && r.near(id, r.serverRank(id))
}

// lends says whether the gradients of a shard are read where they are, too: a worker that keeps copies does not wait for that.
func (r *rank) lends(id int32, with int) bool {
	return r.near(id, with) && r.copyOf(r.plan.Shards[id].Rule).Kind == scheme.Pulled
}

// version is a buffer of a shard in its server's segment, nil where that has no segment here.
func (r *rank) version(sh *shard.Shard, buf int32) []byte {
	if r.shared.window == nil || !r.shared.shards[sh.ID] {
		return nil
	}
	segment := r.shared.window.Of(comm.Peer(r.roles.Servers[sh.Server]))
	n := int(sh.Bytes())
	at := r.shared.at[sh.ID] + int(buf)*aligned(n)
	if segment == nil || segment.Len() < at+n {
		return nil
	}
	return segment.Bytes()[at : at+n]
}

// gradients is the arena of the worker of a rank in its segment, nil where that has none here.
func (r *rank) gradients(rank int) []byte {
	if r.shared.window == nil {
		return nil
	}
	segment := r.shared.window.Of(comm.Peer(rank))
	if segment == nil {
		return nil
	}
	versions := 0
	if m := r.roles.Server(rank); m >= 0 {
		versions = r.shared.end[m] // a rank is on its own host
	}
	n := r.plan.Arena * shard.ElemBytes
	if segment.Len() < versions+n {
		return nil
	}
	return segment.Bytes()[versions : versions+n]
}

// memoryOf takes the memory of a shard's versions: all in shared memory, or the first.
func (r *rank) memoryOf(st *store) (err error) {
	for w, rank := range r.roles.Workers {
		if g := r.gradients(rank); g != nil && r.lends(st.sh.ID, rank) {
			st.grads[w] = comm.NewSegment(g).F32()[st.sh.Lo:st.sh.Hi]
		}
	}
	for i := range st.bufs {
		if v := r.version(st.sh, int32(i)); v != nil {
			st.near, st.bufs[i] = true, comm.NewSegment(v)
		}
	}
	if !st.near {
		st.bufs[0], err = r.t.Alloc(int(st.sh.Bytes()))
	}
	return err
}

// takeGradients takes the gradient arena, of so many bytes: in shared memory where a server reads it.
func (w *workerSide) takeGradients(n int) (err error) {
	w.lends = make([]bool, len(w.r.plan.Shards))
	for s := range w.lends {
		w.lends[s] = w.r.nearServer(int32(s)) && w.r.lends(int32(s), w.r.serverRank(int32(s)))
	}
	if g := w.r.gradients(w.r.me); g != nil {
		w.grads = comm.NewSegment(g)
		return nil
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
	if s == nil || int(piece) >= len(s.r.plan.Pieces) || s.r.workerOf[from] < 0 {
		s.r.fail(fmt.Errorf("runtime: rank %d says that piece %d is there, which is not one of this server's", from, piece))
		return
	}
	p := &s.r.plan.Pieces[piece]
	st, w := s.stores[p.Shard], s.r.workerOf[from]
	if st == nil || st.grads[w] == nil || st.in[w].open == 0 {
		s.r.fail(fmt.Errorf("runtime: rank %d says that piece %d is there, and no such push is on its way", from, piece))
		return
	}
	s.r.bytesShared += p.Bytes()
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
			s.r.fail(err)
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
	s.r.send(s.r.roles.Workers[e.To], &e.Msg)
}

// readVersion copies a version from the server's memory to the parameters.
func (w *workerSide) readVersion(e *core.Effect) {
	sh := &w.r.plan.Shards[e.Shard]
	lo := sh.Lo * shard.ElemBytes
	n := copy(w.params.Bytes()[lo:], w.r.version(sh, e.Src))
	w.r.bytesShared += int64(n)
}

// planShared says which ranks share memory, and how much.
func planShared(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) {
	near := nearShards(c, p, nearMin)
	if !slices.Contains(near, true) {
		return
	}
	_, end := segments(p, near, versionsOf(c, len(roles.Workers)))
	var order []string
	bytes, ranks := map[string]int{}, map[string][]string{}
	for rank, host := range hosts {
		versions, grads := segmentBytes(p, roles, end, rank, func(other int) bool { return hosts[other] == host })
		if versions+grads == 0 {
			continue
		}
		if ranks[host] == nil {
			order = append(order, host)
		}
		bytes[host] += versions + grads
		ranks[host] = append(ranks[host], roles.Name(rank))
	}
	if order == nil {
		return
	}
	n := 0
	for _, yes := range near {
		if yes {
			n++
		}
	}
	fmt.Fprintf(b, "\nShared memory, where it is enough: %d of %s, those of at least %s; of what is above, servers and workers of one host then only send the headers\n",
		n, count(len(near), "shard"), size(nearMin))
	for _, host := range order {
		fmt.Fprintf(b, "  %s  %s of /dev/shm: %s\n", host, size(int64(bytes[host])), strings.Join(ranks[host], ", "))
	}
}
