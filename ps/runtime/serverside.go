package runtime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// serverSide obeys the effects of a Server node: it finds memory for the node's slots and buffers, folds,
// commits and replies.
type serverSide struct {
	r       *rank
	node    *core.Server
	stores  []*store      // by shard; nil where another server owns it
	out     []core.Effect // scratch
	sent    []core.Input  // replies that left in frames, for the node when the effects before are obeyed
	due     []due         // whose next push shall be received ahead
	posted  int           // receives posted ahead, in flight
	apart   bool          // the node tells which pieces of replies leave, and is told of each
	landed  comm.Handler  // of the pieces of pushes that come on the data channel
	asked   comm.Handler  // of the keys of pulls
	left    comm.Handler  // of the pieces of replies that go there
	spans   metrics.Spans
	folds   bool // since the clock was last looked at: folds or commits
	answers bool // the same: replies
	done    bool
	alarms  map[*time.Timer]bool // that will come
	version version              // that is kept for a checkpoint
	kept    map[int64]int        // snapshot index: shards of this server that have kept it
	told    int64                // messages to rank 0, Ready and Stale
	unheard unheard
	full    bool          // a snapshot was left out for want of room
	last    time.Duration // when the node was last told anything
	warned  bool          // since then, a stall was explained
}

// store is the memory of one shard on its server.
type store struct {
	sh      *shard.Shard
	bufs    []*comm.Buf // versions, by the node's buffer numbers; nil until used
	slots   []slot      // staged pushes, by the node's slot numbers; as many as were used
	math    *optim.Store
	in      []arrival   // per worker: its push that is on its way
	gone    []departure // per worker: the version that is on its way to it
	near    bool        // the versions are in shared memory
	grads   [][]float32 // per worker: its gradients, where they are read in its memory; else nil
	borrows []bool      // per worker: a fold of its push that is put off may still read them
	lent    []*comm.Buf // the same of memory of slots
	ahead   []ahead     // per worker; nil where receives are posted when a push is announced
	coded   decoder     // of what does not travel as it is
	apart   [2]int      // pieces of a push, and of a reply, that are messages of their own
	asking  []asking    // per worker: its pull; nil where pulls have no keys
	norms   bool        // the scheme asks for the norms of each push
	snaps   map[int64]*comm.Buf
	seen    []int64 // versions seen by the pushes folded since the last commit
	stale   metrics.Hist
	lead    metrics.Hist
}

func newServerSide(r *rank) (*serverSide, error) {
	update, err := r.cfg.Update()
	if err != nil {
		return nil, err
	}
	s := &serverSide{r: r, stores: make([]*store, len(r.plan.Shards)), kept: map[int64]int{}, unheard: unheard{Rules: make([]metrics.Hist, len(r.cfg.Sync))}}
	s.landed, s.left, s.asked = s.pieceCame, s.pieceLeft, s.keysCame
	s.alarms = map[*time.Timer]bool{}
	for _, id := range r.plan.OfServer(int32(r.roles.Server(r.me))) {
		if s.stores[id], err = s.newStore(id, update); err != nil {
			return nil, err
		}
	}
	return s, s.makeNode(r.from)
}

// makeNode makes the node, as it goes on from a checkpoint or a pause, or nil: as it begins.
func (s *serverSide) makeNode(q *origin) error {
	r := s.r
	me := int32(r.roles.Server(r.me))
	schemes, err := r.build().Schemes(me, q.start())
	if err != nil {
		return err
	}
	for id, ss := range schemes {
		s.stores[id].norms = ss.Norms
	}
	s.node = r.build().Server(me, build.Server{Schemes: schemes, Shares: r.routes.Shares, Saves: r.cfg.Checkpoint.Periodic(),
		SnapshotEvery: r.cfg.Evaluate.Samples(r.set.Train.Rows()), Decided: r.o.Decided})
	return nil
}

func (s *serverSide) newStore(id int32, update optim.Update) (*store, error) {
	r := s.r
	sh := &r.plan.Shards[id]
	workers := len(r.roles.Workers)
	st := &store{sh: sh, bufs: make([]*comm.Buf, layout.Versions(r.cfg, workers)), in: make([]arrival, workers), grads: make([][]float32, workers), borrows: make([]bool, workers), gone: make([]departure, workers), snaps: map[int64]*comm.Buf{}}
	st.apart[0], st.apart[1] = r.routes.Apart(sh)
	st.coded = newDecoder(sh, workers, len(st.bufs))
	if r.routes.Keyed() != nil {
		st.asking = make([]asking, workers)
	}
	if err := r.memoryOf(st); err != nil {
		return nil, fmt.Errorf("parameters of shard %s: %w", sh.Name, err)
	}
	b := st.bufs[0]
	r.build().Fill(b.F32(), sh, r.param)
	st.math = r.build().Store(id, update)
	st.math.Spread(r.cfg.Device.Threads, parallel)
	return st, nil
}

// owns says whether a piece is one of this server's; no piece is one of a rank that does not serve.
func (s *serverSide) owns(piece int32) bool {
	return s != nil && int(piece) < len(s.r.plan.Pieces) && s.stores[s.r.plan.Pieces[piece].Shard] != nil
}

func (s *serverSide) step(in core.Input) {
	s.r.net.Begin()
	s.stepAt(in, s.r.now())
	s.r.net.End()
}

// stepAt tells the node and obeys, inside a batch.
func (s *serverSide) stepAt(in core.Input, at time.Duration) {
	if in.Kind != core.Written { // which says nothing of the workers
		s.last, s.warned = at, false
	}
	for next := 0; ; next++ {
		in.At = at
		s.out = s.node.Step(in, s.out[:0])
		for i := range s.out {
			s.obey(&s.out[i])
		}
		if next == len(s.sent) {
			break
		}
		in = s.sent[next]
	}
	s.sent = s.sent[:0]
}

func (s *serverSide) obey(e *core.Effect) {
	switch e.Kind {
	case core.Send:
		s.r.net.Send(s.r.roles.Workers[e.To], &e.Msg)
	case core.SendServer:
		s.r.net.Send(s.r.roles.Servers[e.To], &e.Msg)
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
	case core.Save:
		s.keepVersion(e)
	case core.Snapshot:
		s.snapshot(e)
	case core.Own:
		s.ownPush(e)
	case core.Done:
		s.done = true
		for t := range s.alarms {
			t.Stop()
		}
	case core.WakeAt:
		s.wake(e)
	case core.Unstage:
		s.r.net.Fail(errors.New("runtime: a worker left in the middle of a push, over a transport that loses nothing"))
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
				s.r.net.Begin()
				s.stepAt(in, max(at, s.r.now()))
				s.r.net.End()
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
			s.r.net.Fail(err)
			return nil
		}
		list[i] = b
	}
	return list[i]
}

// measure takes the norms of the mean of a push that is complete, and of the current parameters.
func (st *store) measure(in *core.Input, current int32, samples int64) {
	in.Norm2, in.NormInf, in.NormW = st.math.Norms(st.slots[in.Slot].push, st.bufs[current].F32(), 1/float64(max(samples, 1)))
}

func (s *serverSide) fold(e *core.Effect) {
	s.folding()
	st := s.stores[e.Shard]
	if e.From != scheme.SlotPush {
		st.math.FoldSums(e.Into.Sums(), e.From.Sums(), e.Scale, e.Weight)
	} else {
		from := &st.slots[e.Slot]
		if from.of >= 0 {
			st.borrows[from.of] = true
		} else if !slices.Contains(st.lent, from.own) {
			st.lent = append(st.lent, from.own)
		}
		st.math.Fold(e.Into.Sums(), from.push, e.Scale, e.Weight) // stage gives the slot back
		st.seen = append(st.seen, e.Msg.Version)
		if e.Shard == 0 {
			s.r.lead.folded(e.Msg)
		}
	}
}

func (s *serverSide) commit(e *core.Effect) {
	s.folding()
	st := s.stores[e.Shard]
	b := s.memory(st.bufs, e.Dst, st.sh.Bytes())
	if b == nil {
		return
	}
	st.coded.forget(e.Dst)
	st.math.Commit(b.F32(), st.bufs[e.Src].F32(), e.Clock, e.Scale, e.Weight)
	st.unlent()
	for _, seen := range st.seen {
		st.stale.Add(e.Iter - 1 - seen)
		s.stale(st.sh.Rule, e.Iter-1-seen)
	}
	st.seen = st.seen[:0]
	if e.Shard == 0 {
		s.r.lead.committed(e, st.math.Rate(e.Clock))
	}
}

// flush does the folds that are put off.
func (st *store) flush() {
	st.math.Flush()
	st.unlent()
}

func (st *store) unlent() {
	clear(st.borrows)
	st.lent = st.lent[:0]
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
		s.r.net.Fail(fmt.Errorf("snapshot %d: %w", e.Iter, err))
		return
	}
	copy(b.Bytes(), st.bufs[e.Src].Bytes())
	st.snaps[e.Iter] = b
	if e.Shard == 0 {
		s.r.lead.snapshotTaken(e.Iter, e.Samples)
	}
	s.kept[e.Iter]++
	if s.kept[e.Iter] == len(s.node.Shards()) {
		s.told++
		h := wire.SnapshotKept(e.Iter)
		s.r.net.Send(0, &h)
	}
}

// forget drops the snapshots up to k.
func (s *serverSide) forget(k int64) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		for i, b := range st.snaps {
			if i <= k {
				b.Free()
				delete(st.snaps, i)
			}
		}
	}
}

// sendSnapshot answers a rank that asks for this server's slices of snapshot k; -1 is the current version.
func (s *serverSide) sendSnapshot(to int, k int64) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		b := st.snaps[k]
		if k < 0 {
			b = st.bufs[s.node.Shard(id).Cur]
		}
		if b == nil {
			s.r.net.Fail(fmt.Errorf("runtime: rank %d asks for snapshot %d of shard %s, which was not kept", to, k, st.sh.Name))
			return
		}
		for _, p := range st.sh.Pieces {
			off, n := at(p)
			s.r.net.Hold()
			s.r.t.Isend(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), b, off-st.sh.Lo*shard.ElemBytes, n, func(d comm.Done) {
				s.r.net.Let()
				s.r.net.Fail(d.Err)
			})
		}
	}
}

// close gives the memory back, when nothing is in flight any more.
func (s *serverSide) close() {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		for _, b := range st.bufs {
			if b != nil && !st.near {
				b.Free()
			}
		}
		for _, q := range st.slots {
			if q.own != nil {
				q.own.Free()
			}
		}
		for _, a := range st.ahead {
			if a.buf != nil {
				a.buf.Free()
			}
		}
		for _, b := range st.snaps {
			b.Free()
		}
		st.coded.close()
	}
}

// finishSpans closes the books of the server's training time: what was neither folding nor answering was idle.
func (s *serverSide) finishSpans(wall time.Duration) {
	s.spans.Wall = wall
	s.spans.Add(metrics.Idle, max(0, s.spans.Rest()))
}
