// Package serve is the serving side of a rank: it drives a Server node over the link. Pieces of pushes land in slots, are folded and
// committed, and versions leave from their own memory.
package serve

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
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/station"
)

// Side obeys the effects of a Server node: it finds memory for the node's slots and buffers, folds,
// commits and replies.
type Side struct {
	station *station.Station // whose side this is
	o       Options
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

// Options are what a server is made with.
type Options struct {
	Start    *build.Start // where the node goes on; nil: it begins
	Decided  core.Decided // told what the schemes decide; may be nil
	Observer Observer     // nil but on rank 0
	Write    station.FileWriter
}

// Observer hears on rank 0, which owns the lead shard, what happens there.
type Observer interface {
	Folded(m wire.Header)                           // a push entered the lead shard
	Committed(version, samples int64, rate float64) // the lead shard has a version, of so many samples more, by this learning rate
	Snapshot(k, samples int64)                      // snapshot k of the lead shard was taken, after so many samples
	Kept(clock int64)                               // the lead shard was kept for a checkpoint, with every worker about to compute iteration clock
	Stale(rule int, versions int64)                 // a push of any shard of this server was committed, so many versions behind
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

// New makes the serving side of a rank that owns shards, with their memory. It fails where there is no room for them.
func New(r *station.Station, o Options) (*Side, error) {
	update, err := r.Config.Update()
	if err != nil {
		return nil, err
	}
	s := &Side{station: r, o: o, stores: make([]*store, len(r.Plan.Shards)), kept: map[int64]int{}, unheard: unheard{Rules: make([]metrics.Hist, len(r.Config.Sync))}}
	s.landed, s.left, s.asked = s.pieceCame, s.pieceLeft, s.keysCame
	s.alarms = map[*time.Timer]bool{}
	for _, id := range r.Plan.OfServer(int32(r.Roles.Server(r.Me))) {
		if s.stores[id], err = s.newStore(id, update); err != nil {
			return nil, err
		}
	}
	if err := s.makeNode(o.Start); err != nil {
		return nil, err // and no side without a node, which could not be closed
	}
	return s, nil
}

// makeNode makes the node, as it goes on from a checkpoint or a pause, or nil: as it begins.
func (s *Side) makeNode(start *build.Start) error {
	r := s.station
	me := int32(r.Roles.Server(r.Me))
	schemes, err := r.Build().Schemes(me, start)
	if err != nil {
		return err
	}
	for id, ss := range schemes {
		s.stores[id].norms = ss.Norms
	}
	s.node = r.Build().Server(me, build.Server{Schemes: schemes, Shares: r.Routes.Shares, Saves: r.Config.Checkpoint.Periodic(),
		SnapshotEvery: r.Config.Evaluate.Samples(r.Set.Train.Rows()), Decided: s.o.Decided})
	return nil
}

func (s *Side) newStore(id int32, update optim.Update) (*store, error) {
	r := s.station
	sh := &r.Plan.Shards[id]
	workers := len(r.Roles.Workers)
	st := &store{sh: sh, bufs: make([]*comm.Buf, layout.Versions(r.Config, workers)), in: make([]arrival, workers), grads: make([][]float32, workers), borrows: make([]bool, workers), gone: make([]departure, workers), snaps: map[int64]*comm.Buf{}}
	st.apart[0], st.apart[1] = r.Routes.Apart(sh)
	st.coded = newDecoder(sh, workers, len(st.bufs))
	if r.Routes.Keyed() != nil {
		st.asking = make([]asking, workers)
	}
	if err := s.memoryOf(st); err != nil {
		return nil, fmt.Errorf("parameters of shard %s: %w", sh.Name, err)
	}
	b := st.bufs[0]
	r.Build().Fill(b.F32(), sh, r.Params)
	st.math = r.Build().Store(id, update)
	st.math.Spread(r.Config.Device.Threads, station.Parallel)
	return st, nil
}

// owns says whether a piece is one of this server's; no piece is one of a rank that does not serve.
func (s *Side) owns(piece int32) bool {
	return s != nil && int(piece) < len(s.station.Plan.Pieces) && s.stores[s.station.Plan.Pieces[piece].Shard] != nil
}

// Step tells the node of an input, and obeys.
func (s *Side) Step(in core.Input) {
	s.station.Net.Begin()
	s.stepAt(in, s.station.Now())
	s.station.Net.End()
}

// stepAt tells the node and obeys, inside a batch.
func (s *Side) stepAt(in core.Input, at time.Duration) {
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

func (s *Side) obey(e *core.Effect) {
	switch e.Kind {
	case core.Send:
		s.station.Net.Send(s.station.Roles.Workers[e.To], &e.Msg)
	case core.SendServer:
		s.station.Net.Send(s.station.Roles.Servers[e.To], &e.Msg)
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
	case core.Merge:
		s.merge(e)
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
		s.station.Net.Fail(errors.New("serve: a worker left in the middle of a push, over a transport that loses nothing"))
	default:
		panic(fmt.Sprintf("serve: server effect %v", e))
	}
}

// wake gives the node an alarm at its time, which is stamped on it: no clock may say that it comes too early.
func (s *Side) wake(e *core.Effect) {
	in := core.Input{Kind: core.Alarm, Shard: e.Shard}
	at := e.At
	var t *time.Timer
	t = time.AfterFunc(max(0, at-s.station.Now()), func() {
		s.station.Transport.Post(func() {
			delete(s.alarms, t)
			if !s.done {
				s.station.Net.Begin()
				s.stepAt(in, max(at, s.station.Now()))
				s.station.Net.End()
			}
		})
	})
	s.alarms[t] = true
}

// memory finds the buffer of a number, and makes it the first time.
func (s *Side) memory(list []*comm.Buf, i int32, bytes int64) *comm.Buf {
	if list[i] == nil {
		b, err := s.station.Transport.Alloc(int(bytes))
		if err != nil {
			s.station.Net.Fail(err)
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

func (s *Side) fold(e *core.Effect) {
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
			s.o.Observer.Folded(e.Msg)
		}
	}
}

func (s *Side) commit(e *core.Effect) {
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
		s.o.Observer.Committed(e.Iter, e.Samples, st.math.Rate(e.Clock))
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

// Close gives the memory back, when nothing is in flight any more.
func (s *Side) Close() {
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

// FinishSpans closes the books of the server's training time: what was neither folding nor answering was idle.
func (s *Side) FinishSpans(wall time.Duration) {
	s.spans.Wall = wall
	s.spans.Add(metrics.Idle, max(0, s.spans.Rest()))
}
