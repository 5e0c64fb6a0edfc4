// Package serve is the serving side of a rank: it drives a Server node over the link. Pieces of pushes land in slots, are
// folded and committed, and versions leave from their own memory.
package serve

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/digest"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/ps/scheme"
)

// Side obeys the effects of a Server node: it finds memory for the node's slots and buffers, folds, commits and replies.
type Side struct {
	station        *station.Station // of the rank
	o              Options
	node           *servernode.Server
	stores         []*store      // by shard; nil: another server owns it
	out            []core.Effect // scratch
	told           []core.Input  // what the node hears after the current effects: replies sent in frames, and squares
	dueAhead       []aheadPush   // receives to be posted ahead
	posted         int           // receives posted ahead, in flight
	byPiece        bool          // the node sends replies piece by piece, and is told of each piece
	landed         comm.Handler  // of received pieces of pushes
	keysLanded     comm.Handler  // of received keys of pulls
	left           comm.Handler  // of sent pieces of replies
	spans          metrics.Spans
	foldTiming     bool // the time since the last look at the clock belongs to folds and commits
	replyTiming    bool // that time belongs to replies
	done           bool
	alarms         map[*time.Timer]bool // pending
	version        version              // kept for a checkpoint
	snapshotShards map[int64]int        // by snapshot: how many shards of this server have kept it
	sentToRank0    int64                // number of messages to rank 0: of snapshots and of staleness
	unreported     unreported
	snapshotsFull  bool          // a snapshot was left out for want of memory, and the warning was given
	lastInput      time.Duration // time of the node's last input
	warned         bool          // a stall was explained since then
	found          origin.Log    // values that are not finite
}

// Options are the inputs of New.
type Options struct {
	Start    *build.Start       // where the node resumes; nil: at the beginning
	Decided  servernode.Decided // told of the decisions of schemes; may be nil
	Observer Observer           // nil except on rank 0
	Write    station.FileWriter
	Digests  *digest.Log      // gets a checksum of each version; nil: none are kept
	Timeline *timeline.Server // nil: no timeline is recorded
}

// Observer hears, on rank 0, what happens to the lead shard, which rank 0 owns.
type Observer interface {
	Folded(m wire.Header) // a push was folded into the lead shard
	// the lead shard has a new version, with so many more samples, made with this learning rate
	Committed(version, samples int64, rate float64)
	Snapshot(k, samples int64)      // snapshot k of the lead shard was taken, after so many samples
	Kept(clock int64)               // the lead shard was kept for a checkpoint, before all workers compute iteration clock
	Changed(e *core.Effect)         // the rules that wait for stragglers have changed their schemes
	Stale(rule int, versions int64) // a push of any shard of this server was committed, so many versions stale
}

// store is the memory of one shard on its server.
type store struct {
	sh           *shard.Shard
	bufs         []*comm.Buf // versions, by the node's buffer number; nil until used
	slots        []slot      // staged pushes, by the node's slot number
	math         *optim.Store
	arrivals     []arrival   // by worker: its arriving push
	departures   []departure // by worker: the version that is being sent to it
	shared       bool        // the versions are in shared memory
	grads        [][]float32 // by worker: its gradients, if folds read them in the worker's memory; else nil
	readsGrads   []bool      // by worker: a deferred fold of its push may still read them
	readSlots    []*comm.Buf // memory of slots that a deferred fold may still read
	ahead        []ahead     // by worker; nil: receives are posted when a push is announced
	coded        decoder     // of encoded pieces
	messages     [2]int      // number of pieces of a push and of a reply that have a message of their own
	keyedPulls   []keyedPull // by worker: its pull; nil: pulls have no keys
	norms        bool        // the scheme asks for the norms of each push
	snapshots    map[int64]*comm.Buf
	seenVersions []int64         // of the pushes folded since the last commit: the version that each was computed on
	pushers      []origin.Pusher // of the same pushes
	faulty       bool            // a value of the shard was not finite
	stale        metrics.Hist
	lead         metrics.Hist
}

// New makes the serving side of a rank that owns shards, with their memory. It fails if there is not enough memory.
func New(r *station.Station, o Options) (*Side, error) {
	update, err := r.Config.ServerUpdate(r.Roles.Computes())
	if err != nil {
		return nil, err
	}
	s := &Side{station: r, o: o, stores: make([]*store, len(r.Plan.Shards)), snapshotShards: map[int64]int{},
		unreported: unreported{Rules: make([]metrics.Hist, len(r.Config.Sync))}}
	s.landed, s.left, s.keysLanded = s.pieceReceived, s.pieceLeft, s.keysReceived
	s.alarms = map[*time.Timer]bool{}
	for _, id := range r.Plan.OfServer(int32(r.Roles.Server(r.Me))) {
		if s.stores[id], err = s.newStore(id, update); err != nil {
			return nil, err
		}
	}
	if err := s.makeNode(o.Start); err != nil {
		return nil, err // no Side without a node: Close needs one
	}
	return s, nil
}

// makeNode makes the node, which resumes at start after a checkpoint or a pause; nil: it begins.
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
	st := &store{sh: sh, bufs: make([]*comm.Buf, layout.Versions(r.Config, workers)), arrivals: make([]arrival, workers),
		grads: make([][]float32, workers), readsGrads: make([]bool, workers), departures: make([]departure, workers),
		snapshots: map[int64]*comm.Buf{}}
	st.messages[0], st.messages[1] = r.Routes.MessagesOf(sh)
	st.coded = newDecoder(sh, workers, len(st.bufs))
	if r.Routes.Keyed() != nil {
		st.keyedPulls = make([]keyedPull, workers)
	}
	if err := s.allocVersions(st); err != nil {
		return nil, fmt.Errorf("parameters of shard %s: %w", sh.Name, err)
	}
	b := st.bufs[0]
	if err := r.Build().Fill(b.F32(), sh, r.Model.Architecture); err != nil {
		return nil, err
	}
	st.math = r.Build().Store(id, update)
	st.math.Spread(r.Config.Device.Threads, station.Parallel)
	return st, nil
}

// owns says whether this server owns the piece; a rank that does not serve owns none.
func (s *Side) owns(piece int32) bool {
	return s != nil && int(piece) < len(s.station.Plan.Pieces) && s.stores[s.station.Plan.Pieces[piece].Shard] != nil
}

// Step gives the node an input and obeys its effects.
func (s *Side) Step(in core.Input) {
	s.station.Net.Begin()
	s.stepAt(in, s.station.Now())
	s.station.Net.End()
}

// stepAt does the same inside a batch.
func (s *Side) stepAt(in core.Input, at time.Duration) {
	if in.Kind != core.Written { // Written says nothing about the workers
		s.lastInput, s.warned = at, false
	}
	for next := 0; ; next++ {
		in.At = at
		s.o.Timeline.Stepped(&in)
		s.out = s.node.Step(in, s.out[:0])
		for i := range s.out {
			s.obey(&s.out[i])
		}
		if next == len(s.told) {
			break
		}
		in = s.told[next]
	}
	s.told = s.told[:0]
}

func (s *Side) obey(e *core.Effect) {
	switch e.Kind {
	case core.Send:
		s.station.Net.Send(s.station.Roles.Workers[e.To], &e.Msg)
	case core.SendServer:
		s.station.Net.Send(s.station.Roles.Servers[e.To], &e.Msg)
	case core.Close:
	case core.Changed:
		s.o.Observer.Changed(e)
	case core.Stage:
		s.stage(e)
	case core.Fold:
		s.fold(e)
	case core.Norm:
		s.norm(e)
	case core.Commit:
		s.o.Timeline.Begin(timeline.CommitIter(e))
		s.commit(e)
		s.o.Timeline.Commit(e)
	case core.Reply:
		s.o.Timeline.BeginReply(e)
		s.reply(e)
		s.o.Timeline.Reply(e)
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
		s.setAlarm(e)
	case core.Unstage:
		s.station.Net.Fail(errors.New("serve: a worker left in the middle of a push, but the transport loses no message"))
	default:
		panic(fmt.Sprintf("serve: server effect %v", e))
	}
}

// setAlarm gives the node an alarm at its time. The input carries at least that time, so that no clock makes it early.
func (s *Side) setAlarm(e *core.Effect) {
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

// bufferAt returns buffer i of the list, which it allocates on first use.
func (s *Side) bufferAt(list []*comm.Buf, i int32, bytes int64) *comm.Buf {
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

// measure computes the norms of the mean of a complete push, and of the current parameters.
func (st *store) measure(in *core.Input, current int32, samples int64) {
	in.Norm2, in.NormInf, in.NormW = st.math.Norms(st.slots[in.Slot].push, st.bufs[current].F32(), 1/float64(max(samples, 1)))
}

func (s *Side) fold(e *core.Effect) {
	s.beginFoldTime()
	st := s.stores[e.Shard]
	if e.From != scheme.SlotPush {
		st.math.FoldSums(e.Into.Sums(), e.From.Sums(), e.Scale, e.Weight)
	} else {
		s.o.Timeline.Begin(e.Msg.Iter)
		from := &st.slots[e.Slot]
		if from.owner >= 0 {
			st.readsGrads[from.owner] = true
		} else if !slices.Contains(st.readSlots, from.own) {
			st.readSlots = append(st.readSlots, from.own)
		}
		st.math.Fold(e.Into.Sums(), from.push, e.Scale, e.Weight)
		st.seenVersions = append(st.seenVersions, e.Msg.Version)
		st.pushers = append(st.pushers, origin.Pusher{Worker: e.Msg.Worker, Iter: e.Msg.Iter})
		s.o.Timeline.Fold(e)
		if e.Shard == 0 {
			s.o.Observer.Folded(e.Msg)
		}
	}
}

// norm computes the squares of the mean that the next commit of a shard will be of.
func (s *Side) norm(e *core.Effect) {
	s.beginFoldTime()
	st := s.stores[e.Shard]
	st.flush()
	s.told = append(s.told, core.Input{Kind: core.Normed, Shard: e.Shard, Squares: st.math.Squares(e.Weight)})
}

func (s *Side) commit(e *core.Effect) {
	s.beginFoldTime()
	st := s.stores[e.Shard]
	b := s.bufferAt(st.bufs, e.Dst, st.sh.Bytes())
	if b == nil {
		return
	}
	st.coded.invalidate(e.Dst)
	st.math.After(float64(e.Before) / float64(s.station.Config.Batch(s.station.Roles.Computes())))
	st.math.Commit(b.F32(), st.bufs[e.Src].F32(), e.Clock, e.Scale, e.Weight)
	s.lookAtFault(st, e.Iter)
	s.o.Digests.Note(e.Iter, e.Shard, b.F32())
	st.noteFoldsDone()
	for _, seen := range st.seenVersions {
		st.stale.Add(e.Iter - 1 - seen)
		s.stale(st.sh.Rule, e.Iter-1-seen)
	}
	st.seenVersions, st.pushers = st.seenVersions[:0], st.pushers[:0]
	if e.Shard == 0 {
		s.o.Observer.Committed(e.Iter, e.Samples, st.math.Shown(e.Clock))
	}
}

// flush does the deferred folds.
func (st *store) flush() {
	st.math.Flush()
	st.noteFoldsDone()
}

func (st *store) noteFoldsDone() {
	clear(st.readsGrads)
	st.readSlots = st.readSlots[:0]
}

// Close frees the memory. Nothing may be in flight any more.
func (s *Side) Close() {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		for _, b := range st.bufs {
			if b != nil && !st.shared {
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
		for _, b := range st.snapshots {
			b.Free()
		}
		st.coded.close()
	}
}

// FinishSpans ends the server's training time, which lasted wall: time that was neither folds nor replies was idle.
func (s *Side) FinishSpans(wall time.Duration) {
	s.spans.Wall = wall
	s.spans.Add(metrics.Idle, max(0, s.spans.Rest()))
}
