package runtime

import (
	"errors"
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// serverSide obeys the effects of a Server node: it finds memory for the node's slots and buffers, folds,
// commits and replies.
type serverSide struct {
	r      *rank
	node   *core.Server
	stores map[int32]*store
	out    []core.Effect // scratch
	spans  metrics.Spans
	done   bool
	alarms map[*time.Timer]bool // that will come
	kept   map[int64]int        // snapshot index: shards of this server that have kept it
	told   int64                // Ready messages sent
	full   bool                 // a snapshot was left out for want of room
	last   time.Duration        // when the node was last told anything
	warned bool                 // since then, a stall was explained
}

// store is the memory of one shard on its server.
type store struct {
	sh    *shard.Shard
	bufs  []*comm.Buf // versions, by the node's buffer numbers; nil until used
	slots []*comm.Buf // staged pushes, by the node's slot numbers; as many as were used
	math  *optim.Store
	norms bool // the scheme asks for the norms of each push
	snaps map[int64]*comm.Buf
	seen  []int64 // versions seen by the pushes folded since the last commit
	stale metrics.Hist
	lead  metrics.Hist
}

func newServerSide(r *rank) (*serverSide, error) {
	update, err := r.cfg.Update()
	if err != nil {
		return nil, err
	}
	s := &serverSide{r: r, stores: map[int32]*store{}, kept: map[int64]int{}}
	me := int32(r.roles.Server(r.me))
	schemes := map[int32]core.ShardScheme{}
	s.alarms = map[*time.Timer]bool{}
	for _, id := range r.plan.OfServer(me) {
		rule := r.cfg.Sync[r.plan.Shards[id].Rule]
		env := scheme.Env{Workers: len(r.roles.Workers), Shards: core.Together(r.plan, id, r.schemeOf), Server: int(me), Servers: len(r.roles.Servers), Follows: core.LeadShard(r.plan, id) != id}
		phases, err := r.cfg.PhasesOf(r.plan.Shards[id].Rule, len(r.roles.Workers), r.set.Train.Rows())
		if err != nil {
			return nil, err
		}
		if ss, made := schemes[env.Shards[0]]; made {
			schemes[id] = ss
		} else if schemes[id], err = core.NewShardSchemes(phases, env, r.cfg.Seed); err != nil {
			return nil, fmt.Errorf("sync: match %q: %w", rule.Match, err)
		}
		if s.stores[id], err = s.newStore(id, update); err != nil {
			return nil, err
		}
		s.stores[id].norms = schemes[id].Norms
	}
	s.node = core.NewServer(core.ServerConfig{Me: me, Plan: r.plan, Workers: len(r.roles.Workers), Schemes: schemes,
		Budget: budgetOf(r.cfg, r.set.Train.Rows()), SnapshotEvery: r.cfg.Evaluate.Samples(r.set.Train.Rows()), Decided: r.o.Decided, Send: r.cfg.ReplyPolicy(r.plan)})
	return s, nil
}

func (s *serverSide) newStore(id int32, update optim.Update) (*store, error) {
	r := s.r
	sh := &r.plan.Shards[id]
	st := &store{sh: sh, bufs: make([]*comm.Buf, len(r.roles.Workers)+2), snaps: map[int64]*comm.Buf{}}
	b, err := r.t.Alloc(int(sh.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("parameters of shard %s: %w", sh.Name, err)
	}
	st.bufs[0] = b
	for _, g := range sh.Segs {
		lo := g.At - sh.Lo
		workload.Fill(b.F32()[lo:lo+g.Hi-g.Lo], r.cfg.Seed, r.param[g.Param], g.Lo)
	}
	st.math = r.cfg.NewStore(r.plan, id, update)
	st.math.Spread(r.cfg.Device.Threads, parallel)
	return st, nil
}

func (s *serverSide) step(in core.Input) { s.stepAt(in, s.r.now()) }

func (s *serverSide) stepAt(in core.Input, at time.Duration) {
	in.At = at
	s.last, s.warned = in.At, false
	s.out = s.node.Step(in, s.out[:0])
	for i := range s.out {
		s.obey(&s.out[i])
	}
}

func (s *serverSide) obey(e *core.Effect) {
	switch e.Kind {
	case core.Send:
		s.r.send(s.r.roles.Workers[e.To], e.Msg)
	case core.SendServer:
		s.r.send(s.r.roles.Servers[e.To], e.Msg)
	case core.Close:
	case core.Stage:
		s.stage(e)
	case core.Fold:
		s.fold(e)
	case core.Commit:
		s.commit(e)
	case core.Reply:
		s.reply(e)
	case core.ReplyPiece:
		s.replyPiece(e)
	case core.Snapshot:
		s.snapshot(e)
	case core.Done:
		s.done = true
		for t := range s.alarms {
			t.Stop()
		}
	case core.WakeAt:
		s.wake(e)
	case core.Unstage:
		s.r.fail(errors.New("runtime: a worker left in the middle of a push, over a transport that loses nothing"))
	default:
		panic(fmt.Sprintf("runtime: server effect %v", e))
	}
}

// wake gives the node an alarm at its time, which is stamped on it: no clock may say that it comes too early.
func (s *serverSide) wake(e *core.Effect) {
	in := core.Input{Kind: core.Alarm, Shard: e.Shard}
	at := e.At
	var t *time.Timer
	t = time.AfterFunc(max(0, at-s.r.now()), func() {
		s.r.t.Post(func() {
			delete(s.alarms, t)
			if !s.done {
				s.stepAt(in, max(at, s.r.now()))
			}
		})
	})
	s.alarms[t] = true
}

// memory finds the buffer of a number, and makes it the first time.
func (s *serverSide) memory(list []*comm.Buf, i int32, bytes int64) *comm.Buf {
	if list[i] == nil {
		b, err := s.r.t.Alloc(int(bytes))
		if err != nil {
			s.r.fail(err)
			return nil
		}
		list[i] = b
	}
	return list[i]
}

// stage receives the pieces of a push into a slot.
func (s *serverSide) stage(e *core.Effect) {
	st := s.stores[e.Shard]
	if int(e.Slot) == len(st.slots) {
		st.slots = append(st.slots, nil)
	}
	b := s.memory(st.slots, e.Slot, st.sh.Bytes())
	if b == nil {
		return
	}
	start := s.r.t.Now()
	st.math.Flush() // a push that was folded may be in this slot, and not be read yet
	s.spans.Add(metrics.Fold, s.r.t.Now()-start)
	from := comm.Peer(s.r.roles.Workers[e.To])
	open, samples := len(st.sh.Pieces), e.Samples
	for _, p := range st.sh.Pieces {
		off, n := at(p)
		in := core.Input{Kind: core.PieceLanded, Piece: p.ID, Shard: e.Shard, Slot: e.Slot, Worker: e.To}
		s.r.t.Irecv(from, comm.Data, tagPush|uint32(p.ID), b, off-st.sh.Lo*shard.ElemBytes, n, func(d comm.Done) {
			if !s.r.whole(d, n, "push of shard %s from worker %d", st.sh.Name, in.Worker) {
				return
			}
			s.r.bytesReceived += int64(n)
			if open--; open == 0 && st.norms {
				start := s.r.t.Now()
				st.measure(&in, s.node.Shard(in.Shard).Cur, samples)
				s.spans.Add(metrics.Fold, s.r.t.Now()-start)
			}
			s.step(in)
		})
	}
}

// measure takes the norms of the mean of a push that is complete, and of the current parameters.
func (st *store) measure(in *core.Input, current int32, samples int64) {
	in.Norm2, in.NormInf, in.NormW = optim.Norms(st.slots[in.Slot].F32(), st.bufs[current].F32(), 1/float64(max(samples, 1)))
}

func (s *serverSide) fold(e *core.Effect) {
	start := s.r.t.Now()
	st := s.stores[e.Shard]
	if e.From != scheme.SlotPush {
		st.math.FoldSums(e.Into.Sums(), e.From.Sums(), e.Scale, e.Weight)
	} else {
		st.math.Fold(e.Into.Sums(), st.slots[e.Slot].F32(), e.Scale, e.Weight) // stage gives the slot back
		st.seen = append(st.seen, e.Msg.Version)
		if e.Shard == 0 {
			s.r.lead.folded(e.Msg)
		}
	}
	s.spans.Add(metrics.Fold, s.r.t.Now()-start)
}

func (s *serverSide) commit(e *core.Effect) {
	start := s.r.t.Now()
	st := s.stores[e.Shard]
	b := s.memory(st.bufs, e.Dst, st.sh.Bytes())
	if b == nil {
		return
	}
	st.math.Commit(b.F32(), st.bufs[e.Src].F32(), e.Clock, e.Scale, e.Weight)
	for _, seen := range st.seen {
		st.stale.Add(e.Iter - 1 - seen)
		if e.Shard == 0 {
			s.r.lead.window.stale.Add(e.Iter - 1 - seen)
		}
	}
	st.seen = st.seen[:0]
	if e.Shard == 0 {
		s.r.lead.committed(e, st.math.Rate(e.Clock))
	}
	s.spans.Add(metrics.Fold, s.r.t.Now()-start)
}

// reply sends the version's own buffer, asked for or published: no copy.
func (s *serverSide) reply(e *core.Effect) {
	start := s.r.t.Now()
	st := s.stores[e.Shard]
	to := s.r.roles.Workers[e.To]
	if e.Msg.Kind == wire.Reply {
		st.lead.Add(e.Msg.Iter - e.Msg.Clock)
	}
	in := core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: e.To}
	open := len(st.sh.Pieces)
	s.r.send(to, e.Msg)
	for i := range st.sh.Pieces {
		if e.Apart {
			break
		}
		s.sendReply(st, &st.sh.Pieces[i], e, func() {
			if open--; open == 0 {
				s.step(in)
			}
		})
	}
	s.spans.Add(metrics.Pull, s.r.t.Now()-start)
}

// replyPiece sends one piece of a reply whose header has gone ahead.
func (s *serverSide) replyPiece(e *core.Effect) {
	in := core.Input{Kind: core.ReplyPieceSent, Piece: e.Piece, Worker: e.To}
	s.sendReply(s.stores[e.Shard], &s.r.plan.Pieces[e.Piece], e, func() { s.step(in) })
}

// sendReply sends a piece of version e.Src to worker e.To.
func (s *serverSide) sendReply(st *store, p *shard.Piece, e *core.Effect, sent func()) {
	off, n := at(*p)
	s.r.bytesSent += int64(n)
	s.r.t.Isend(comm.Peer(s.r.roles.Workers[e.To]), comm.Data, tagReply|uint32(p.ID), st.bufs[e.Src], off-st.sh.Lo*shard.ElemBytes, n, func(d comm.Done) {
		s.r.fail(d.Err)
		sent()
	})
}

// snapshot keeps a copy of a version until it was evaluated. Where there is no room, training goes on without it.
func (s *serverSide) snapshot(e *core.Effect) {
	st := s.stores[e.Shard]
	if int64(len(st.snaps)) >= s.r.snapsMax {
		if !s.full {
			s.r.log.Warn("no room for more snapshots: some evaluations are left out; raise evaluate.every_epochs (or every_samples) or cluster.memory_max", "kept", s.r.snapsMax)
		}
		s.full = true
		return
	}
	b, err := s.r.t.Alloc(int(st.sh.Bytes()))
	if err != nil {
		s.r.fail(fmt.Errorf("snapshot %d: %w", e.Iter, err))
		return
	}
	copy(b.Bytes(), st.bufs[e.Src].Bytes())
	st.snaps[e.Iter] = b
	if e.Shard == 0 {
		s.r.lead.snapshotTaken(e.Iter, e.Samples)
	}
	s.kept[e.Iter]++
	if s.kept[e.Iter] == len(s.stores) {
		s.told++
		s.r.send(0, wire.Header{Kind: wire.Ready, Iter: e.Iter})
	}
}

// forget drops the snapshots up to k.
func (s *serverSide) forget(k int64) {
	for _, st := range s.stores {
		for i, b := range st.snaps {
			if i <= k {
				b.Free()
				delete(st.snaps, i)
			}
		}
	}
}

// sendSnapshot answers a rank that asks for this server's slices of snapshot h.Iter; -1 is the current version.
func (s *serverSide) sendSnapshot(to int, h wire.Header) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		b := st.snaps[h.Iter]
		if h.Iter < 0 {
			b = st.bufs[s.node.Shard(id).Cur]
		}
		if b == nil {
			s.r.fail(fmt.Errorf("runtime: rank %d asks for snapshot %d of shard %s, which was not kept", to, h.Iter, st.sh.Name))
			return
		}
		for _, p := range st.sh.Pieces {
			off, n := at(p)
			s.r.open++
			s.r.t.Isend(comm.Peer(to), comm.Data, tagSnapshot|uint32(p.ID), b, off-st.sh.Lo*shard.ElemBytes, n, func(d comm.Done) {
				s.r.open--
				s.r.fail(d.Err)
			})
		}
	}
}

// close gives the memory back, when nothing is in flight any more.
func (s *serverSide) close() {
	for _, st := range s.stores {
		for _, list := range [][]*comm.Buf{st.bufs, st.slots} {
			for _, b := range list {
				if b != nil {
					b.Free()
				}
			}
		}
		for _, b := range st.snaps {
			b.Free()
		}
	}
}

// finishSpans closes the books of the server's training time: what was neither folding nor answering was idle.
func (s *serverSide) finishSpans(wall time.Duration) {
	s.spans.Wall = wall
	s.spans.Add(metrics.Idle, max(0, s.spans.Rest()))
}
