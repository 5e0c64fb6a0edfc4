// Package train is the working side of a rank: it computes iterations on a device, sends the gradients piece by piece, and
// receives parameters into the arena that the kernels read. Its Exchange defines what happens between iterations.
package train

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/workernode"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
	"fluentps/kernels"
	"fluentps/ps/workload"
)

// Side obeys the effects of a Worker node: it computes iterations, sends gradients from the arena that the kernels wrote
// them to, and receives parameters into the arena that the kernels read.
type Side struct {
	station *station.Station // of the rank
	o       Options
	node    *workernode.Worker // nil in a member, whose leader pushes and pulls
	me      int                // index among the workers; in a member, its leader's
	index   int                // index among the ranks that compute, which selects the samples
	model   workload.Model
	feed    feed
	slow    slowness
	pieces  [][]int32 // by layer: the pieces that its gradient completes, in arena order
	arenas  arenas
	deltas  deltas
	enc     encoder // of encoded pieces
	scratch scratch
	data    handlers

	site          site // where it computes
	it            *iteration
	exchange      Exchange
	exchangeAfter bool        // the exchange follows an iteration: within one, all layers are readable and writable
	dealing       *dealing    // nil: its batches never change
	ranges        *ranges     // nil: the worker computes all of its own iterations and nothing else
	leader        *teamLeader // the exchange of a worker with members, else nil
	member        *member     // the exchange of a member, else nil
	done          bool
	idle          idle
	counters      counters
}

// scratch is the memory of one step of the node.
type scratch struct {
	out          []core.Effect
	sentInFrames []int32 // pieces sent in frames; the node hears of them after the current effects
}

// arenas are a worker's memory for parameters and gradients.
type arenas struct {
	params      *comm.Buf
	grads       *comm.Buf
	allocated   []*comm.Buf // memory to free; windows belong to the transport
	into        []landing   // by shard: where the awaited version is received
	copies      copies      // of shards that are not pulled before every iteration
	direct      direct      // of pieces that MPI sends and receives in GPU memory
	savedCopies [][]float32 // the state that a checkpoint in writing reads
	kept        script      // isKept from the end of an iteration until its state is copied for a checkpoint
}

// deltas are the parts of a push that are steps of the worker's own optimizer.
type deltas struct {
	runs  [][]optim.Run // by layer
	local *optim.Delta  // nil: there are none
	own   *ownSteps     // nil: every step is an exchange
	host  *hostSteps    // nil unless the ranks of a host are one worker and take steps of their own
}

// idle is the time in which the rank computes nothing.
type idle struct {
	on         bool          // an iteration, or a layer of one, cannot start
	from       time.Duration // start of that wait
	lastHeader time.Duration // arrival of the last reply header
	blocked    time.Duration // before the current iteration and between its layers
	pull       time.Duration // likewise
	warned     int64         // iteration whose wait was explained; -1: the wait before the first iteration; -2: none
}

// counters are what a worker counts.
type counters struct {
	samples      int64
	threads      int64 // of the worker's own iterations; 0: none has moved
	spans        metrics.Spans
	records      timings.Recorder
	pace         metrics.Pace
	computeUsual time.Duration // computing time of an iteration, smoothed, without injected slowness
	found        origin.Log    // values that are not finite
}

// Options are the inputs of New.
type Options struct {
	Start      *build.Start   // where the node resumes; nil: at the beginning
	Device     kernels.Device // computes the iterations
	Placer     kernels.Placer // the same device, if MPI reaches its memory; else nil
	Background bool           // compute on a separate goroutine, because the driving one also has a server to drive
	Records    bool           // keep the times of iterations
	Traces     configs.Traces // of the faults that replay a run
	Write      station.FileWriter
	Timeline   *timeline.Worker // nil: no timeline is recorded
}

// landing is where the pieces of a version are received: a buffer that begins at byte from of the arena.
type landing struct {
	buf  *comm.Buf
	from int
}

// New makes the working side of a rank that computes, with its memory. It fails if there is not enough memory.
func New(r *station.Station, o Options) (*Side, error) {
	c := r.Config
	me, index := r.Roles.Leader(r.Me), slices.Index(r.Roles.Computing(), r.Me)
	batch := layout.BatchRoom(c, r.Roles.Computes(), index)
	model, err := r.NewModel(o.Device, batch, false)
	if err != nil {
		return nil, err
	}
	ownFeed, err := newFeed(r, index)
	if err != nil {
		return nil, err
	}
	ownFeed.batch = workload.NewBatch(c.Model.Name, r.Set.Samples(), batch)
	w := &Side{station: r, o: o, me: me, index: index, model: model, idle: idle{warned: -2},
		feed: ownFeed, arenas: arenas{into: make([]landing, len(r.Plan.Shards))}}
	w.data.landed, w.data.left = w.pieceReceived, w.pieceLeft
	w.pieces = make([][]int32, len(r.Model.Architecture.Layers))
	for _, p := range r.Plan.Pieces {
		w.pieces[p.Layer] = append(w.pieces[p.Layer], p.ID)
	}
	if err := w.join(); err != nil {
		return nil, err
	}
	if w.slow.to, w.slow.pauses, err = c.Stragglers(index, r.Roles.Computes(), r.Set.Train.Rows(), o.Traces); err != nil {
		return nil, err
	}
	w.counters.pace = metrics.NewPace(r.Roles.Computes())
	if o.Records {
		w.counters.records.Max = layout.RecordsMax(c, r.Roles.Computes())
	}
	w.site, w.it = newSite(w), newIteration(w)
	if w.member != nil {
		if err := w.makeHost(w.arenas.params.F32(), w.arenas.grads); err != nil {
			return nil, err
		}
	}
	if err := w.makeDealing(); err != nil || w.member != nil {
		return w, err
	}
	if w.enc, err = newEncoder(r); err != nil {
		return nil, err
	}
	if err := w.makeDeltas(); err != nil {
		return nil, err
	}
	if err := w.makeOwn(); err != nil {
		return nil, err
	}
	w.makeNode(o.Start)
	if err := w.makeRanges(); err != nil {
		return w, err
	}
	w.it.announce()
	return w, nil
}

// makeNode makes the node, which resumes at start after a checkpoint or a pause; nil: it begins.
func (w *Side) makeNode(start *build.Start) {
	r := w.station
	w.node = r.Build().Worker(w.me, start.Clock(w.me), func(id int32) bool { return r.Routes.Shares(id, int32(w.me)) })
	w.node.DealUntil(w.dealing.until())
}

// makeDeltas finds the pieces that are pushed as deltas. For these the worker has an optimizer of its own.
func (w *Side) makeDeltas() error {
	r := w.station
	w.deltas.runs = make([][]optim.Run, len(w.pieces))
	hasDeltas := false
	for i := range r.Plan.Pieces {
		p := &r.Plan.Pieces[i]
		runs := r.Config.DeltaRuns(r.Plan, p)
		w.deltas.runs[p.Layer] = append(w.deltas.runs[p.Layer], runs...)
		hasDeltas = hasDeltas || len(runs) > 0
	}
	if !hasDeltas {
		return nil
	}
	update, err := r.Config.Update()
	if err != nil {
		return err
	}
	w.deltas.local = optim.NewDelta(r.Plan.Arena, update)
	return nil
}

// Begin starts the worker, which has waited since the given time.
func (w *Side) Begin(since time.Duration) {
	w.beginWait(since)
	if w.node != nil { // a member waits for its leader
		w.dealing.begin()
		w.step(core.Input{Kind: core.Begin})
	}
}

func (w *Side) step(in core.Input) {
	w.station.Net.Begin()
	if in.Kind == core.Arrived && (in.Msg.Kind == wire.Reply || in.Msg.Kind == wire.Publish) {
		w.idle.lastHeader = w.station.Net.Clock()
	}
	for next := 0; ; next++ {
		in.At = w.station.Now()
		w.scratch.out = w.node.Step(in, w.scratch.out[:0])
		w.o.Timeline.Stepped(&in, w.scratch.out, w.station.Net.Clock())
		for i := range w.scratch.out {
			w.obey(&w.scratch.out[i])
		}
		if next == len(w.scratch.sentInFrames) {
			break
		}
		in = core.Input{Kind: core.PieceSent, Piece: w.scratch.sentInFrames[next]}
	}
	w.scratch.sentInFrames = w.scratch.sentInFrames[:0]
	w.site.stepped()
	if w.leader != nil {
		w.leader.tellMembers()
	}
	w.station.Net.End()
}

func (w *Side) obey(e *core.Effect) {
	r := w.station
	switch e.Kind {
	case core.Send:
		r.Net.Send(r.Roles.Servers[e.To], &e.Msg)
		if e.Msg.Kind == wire.Pull && r.Routes.Keyed() != nil {
			w.sendKeys(e.Msg.Shard, r.Roles.Servers[e.To])
		}
	case core.SendBarrier:
		r.Net.Send(0, &e.Msg)
	case core.SendPiece:
		w.sendPiece(e)
	case core.Expect:
		w.expect(e, w.arenas.params, 0)
	case core.Read:
		w.readVersion(e)
	case core.ExpectBeside, core.Adopt, core.Keep, core.AddLocal:
		w.obeyCopies(e)
	case core.Compute:
		if own := w.deltas.own; own != nil {
			own.begin(e.Task())
			return
		}
		w.endWait(w.station.Transport.Now())
		if w.leader != nil {
			w.leader.begin(e.Iter)
		}
		w.beginTask(e.Task())
		w.site.start(e.Task())
	case core.Cancel:
		w.ranges.cancel(e.Dst)
	case core.SendWorker:
		r.Net.Send(r.Roles.Workers[e.To], &e.Msg)
	case core.Done:
		w.endWait(w.station.Transport.Now())
		w.done = true
		w.dealing.leave()
		if w.leader != nil {
			w.leader.endTraining()
		}
		r.Log.Info("the last piece has left", "send", w.node.Sending())
	default:
		panic(fmt.Sprintf("train: worker effect %v", e))
	}
}

// sendPiece sends a piece of the gradients.
func (w *Side) sendPiece(e *core.Effect) {
	to := w.station.Roles.Servers[e.To]
	way := w.station.Routes.Push(e.Piece, int32(w.me))
	if way == layout.InPlace {
		w.station.Net.SendThere(to, e.Piece)
		return
	}
	b, off, n := w.encoded(&w.station.Plan.Pieces[e.Piece])
	if way == layout.InFrame {
		w.station.Net.SendInline(to, wire.PushPiece, e.Piece, b.Bytes()[off:off+n])
		w.scratch.sentInFrames = append(w.scratch.sentInFrames, e.Piece)
		return
	}
	w.station.Net.SendBulk(to, link.TagPush|uint32(e.Piece), b, off, n, w.data.left)
}

// pieceLeft tells the node that a piece was sent on the data channel.
func (w *Side) pieceLeft(d comm.Done) {
	w.station.Net.Fail(d.Err)
	w.step(core.Input{Kind: core.PieceSent, Piece: int32(d.Tag % layout.PiecesMax)})
}

// expect posts the receives of a version of a shard, into a buffer that begins at byte from of the arena.
func (w *Side) expect(e *core.Effect, into *comm.Buf, from int) {
	r := w.station
	w.arenas.into[e.Shard] = landing{into, from}
	sh := &r.Plan.Shards[e.Shard]
	server := comm.Peer(r.Roles.Servers[e.To])
	for i := range sh.Pieces {
		if p := &sh.Pieces[i]; r.Routes.Reply(p.ID, int32(w.me)) == layout.OnData {
			b, off, n := w.inboxOf(p)
			r.Transport.Irecv(server, comm.Data, link.TagReply|uint32(p.ID), b, off, n, w.data.landed)
		}
	}
}

// pieceReceived handles a piece of a version from the data channel.
func (w *Side) pieceReceived(d comm.Done) {
	p := &w.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	_, n := p.InArena()
	encoded := w.station.Routes.EncodesReplies()
	if encoded {
		n = d.N // the receive was posted for the size of its place, at most
	}
	if d.Err != nil || d.N != n {
		w.station.Net.Whole(d, n, "reply of shard %s", w.station.Plan.Shards[p.Shard].Name)
		return
	}
	w.station.Net.Traffic.Received += int64(d.N)
	if !encoded || w.decode(p, w.enc.received(p.ID, d.N)) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: p.ID})
	}
}

// Close frees the memory. Nothing may be in flight any more.
func (w *Side) Close() {
	w.station.Net.Fail(w.o.Device.Close()) // first, because the device may have pinned the memory
	for _, b := range w.arenas.allocated {
		b.Free()
	}
	w.enc.close()
	for _, b := range w.arenas.copies.published {
		b.Free()
	}
}
