// Package train is the working side of a rank: it computes iterations on a device, sends the gradients piece by piece, and receives
// parameters into the arena that the kernels read. What it does between iterations is its Exchange.
package train

import (
	"fmt"
	"slices"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/station"
	"fluentps/ps/workload"
)

// Side obeys the effects of a Worker node: it computes iterations, sends gradients from the arena that
// the kernels wrote them to, and receives parameters into the arena that the kernels read.
type Side struct {
	station *station.Station // whose side this is
	o       Options
	node    *core.Worker // nil of a member, for which another rank of its node pushes and pulls
	me      int          // index among the workers; of a member, its leader's
	index   int          // among the ranks that compute: whose samples it has
	model   workload.Model
	feed    feed
	slow    slowness
	pieces  [][]int32 // per layer, the pieces that its gradient completes, in arena order
	arenas  arenas
	deltas  deltas
	enc     encoder       // of what does not travel as it is
	out     []core.Effect // scratch
	gone    []int32       // pieces that left in frames, for the node when the effects before are obeyed
	data    handlers

	site    site // where it computes
	it      *iteration
	with    Exchange
	nothing bool     // is exchanged while an iteration is computed
	ranges  *ranges  // nil: all of its own iterations are computed, and nothing else
	lead    *leading // that is it, where the worker has members
	member  *member  // the same of a member
	done    bool
	idle    idle
	books   books
}

// handlers are those of pieces on the data channel, made once.
type handlers struct {
	landed comm.Handler // of those that come
	left   comm.Handler // of those that go
}

// feed is where a worker's samples come from.
type feed struct {
	sampler *workload.Sampler
	augment *workload.Augmenter
	batch   workload.Batch
	rows    []int32
}

// arenas are a worker's memory for parameters and gradients.
type arenas struct {
	params *comm.Buf
	grads  *comm.Buf
	own    []*comm.Buf // memory to give back; windows go with the transport
	into   []landing   // per shard: where the version that it waits for lands
	copies copies      // of shards that are not pulled before every iteration
	direct direct      // of what MPI sends from the device and receives there
	keeps  [][]float32 // copies of what it saves, for a checkpoint that is being written
}

// deltas are what is pushed as steps of an optimizer of the worker's own.
type deltas struct {
	runs  [][]optim.Run // per layer
	local *optim.Delta  // nil unless there are some
}

// idle is the time in which nothing is computed.
type idle struct {
	on       bool          // an iteration, or a layer of one, cannot start
	from     time.Duration // when that began
	lastHead time.Duration // when the last reply header came
	blocked  time.Duration // before the current iteration and between its layers
	pull     time.Duration // the same
	warned   int64         // iteration whose wait was explained, -1: none
}

// books are what a worker counts.
type books struct {
	samples int64
	spans   metrics.Spans
	records metrics.Recorder
	pace    metrics.Pace
	usual   time.Duration // what an iteration's computing takes, smoothed, without injected slowness
}

// Options are what a worker is made with.
type Options struct {
	Start   *build.Start   // where the node goes on; nil: it begins
	Device  kernels.Device // it computes on
	Reached kernels.Placer // the same, where MPI reaches its memory; else nil
	Aside   bool           // it computes on a goroutine of its own: the one that drives has a server to drive, too
	Records bool           // of its iterations are kept
	Write   station.FileWriter
}

// landing is where the pieces of a version go: a buffer that begins at byte from of the arena.
type landing struct {
	buf  *comm.Buf
	from int
}

// New makes the working side of a rank that computes, with its memory. It fails where there is no room for that.
func New(r *station.Station, o Options) (*Side, error) {
	c := r.Config
	me, index := r.Roles.Leader(r.Me), slices.Index(r.Computes, r.Me)
	batch := layout.BatchOf(c, len(r.Computes), index)
	model, err := workload.NewModel(c.ModelSpec(), r.Set.Samples(), o.Device, batch)
	if err != nil {
		return nil, err
	}
	own, err := newFeed(r, index)
	if err != nil {
		return nil, err
	}
	own.batch = workload.NewBatch(c.Model.Name, r.Set.Samples(), batch)
	w := &Side{station: r, o: o, me: me, index: index, model: model, idle: idle{warned: -2},
		feed: own, arenas: arenas{into: make([]landing, len(r.Plan.Shards))}}
	w.data.landed, w.data.left = w.pieceCame, w.pieceLeft
	w.pieces = make([][]int32, len(model.Layers()))
	for _, p := range r.Plan.Pieces {
		w.pieces[p.Layer] = append(w.pieces[p.Layer], p.ID)
	}
	if err := w.join(); err != nil {
		return nil, err
	}
	for _, f := range c.Faults {
		if f.Worker == index || f.Worker < 0 {
			w.slow.faults = append(w.slow.faults, f.Slow)
		}
	}
	w.books.pace = metrics.NewPace(len(r.Computes))
	if o.Records {
		w.books.records.Max = layout.RecordsMax(c, len(r.Computes))
	}
	w.site, w.it = newSite(w), newIteration(w)
	if w.member != nil {
		return w, nil
	}
	if w.enc, err = newEncoder(r); err != nil {
		return nil, err
	}
	if err := w.makeDeltas(); err != nil {
		return nil, err
	}
	w.makeNode(o.Start)
	return w, w.makeRanges()
}

// newFeed deals out the samples of one of those that compute. It has no batch yet.
func newFeed(r *station.Station, index int) (feed, error) {
	c, n := r.Config, len(r.Computes)
	batch := layout.BatchOf(c, n, index)
	rows, err := workload.Partition(c.Data.Partition, r.Set.Train.Rows(), n, index, c.Seed)
	if err != nil {
		return feed{}, err
	}
	return feed{sampler: workload.NewSampler(rows, batch, c.Seed, index), augment: workload.NewAugmenter(c.Data.Augment, r.Set.Image, c.Seed, index),
		rows: make([]int32, 0, batch)}, nil
}

// makeNode makes the node, as it goes on from a checkpoint or a pause, or nil: as it begins.
func (w *Side) makeNode(start *build.Start) {
	r := w.station
	w.node = r.Build().Worker(w.me, start.Clock(w.me), func(id int32) bool { return r.Routes.Shares(id, int32(w.me)) })
}

// makeDeltas finds what is pushed as deltas: for that the worker has an optimizer of its own.
func (w *Side) makeDeltas() error {
	r := w.station
	w.deltas.runs = make([][]optim.Run, len(w.pieces))
	any := false
	for i := range r.Plan.Pieces {
		p := &r.Plan.Pieces[i]
		runs := r.Config.DeltaRuns(r.Plan, p)
		w.deltas.runs[p.Layer] = append(w.deltas.runs[p.Layer], runs...)
		any = any || len(runs) > 0
	}
	if !any {
		return nil
	}
	update, err := r.Config.Update()
	if err != nil {
		return err
	}
	w.deltas.local = optim.NewDelta(r.Plan.Arena, update)
	return nil
}

// Begin lets the worker begin; it waits since that time.
func (w *Side) Begin(since time.Duration) {
	w.wait(since)
	if w.node != nil { // a member waits for its leader
		w.step(core.Input{Kind: core.Begin})
	}
}

func (w *Side) step(in core.Input) {
	w.station.Net.Begin()
	if in.Kind == core.Arrived && (in.Msg.Kind == wire.Reply || in.Msg.Kind == wire.Publish) {
		w.idle.lastHead = w.station.Net.Clock()
	}
	for next := 0; ; next++ {
		in.At = w.station.Now()
		w.out = w.node.Step(in, w.out[:0])
		for i := range w.out {
			w.obey(&w.out[i])
		}
		if next == len(w.gone) {
			break
		}
		in = core.Input{Kind: core.PieceSent, Piece: w.gone[next]}
	}
	w.gone = w.gone[:0]
	w.site.stepped()
	if w.lead != nil {
		w.lead.tell()
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
		w.waited(w.station.Transport.Now())
		if w.lead != nil {
			w.lead.begin(e.Iter)
		}
		w.ranges.begin(e.Task())
		w.site.start(e.Task())
	case core.Cancel:
		w.ranges.cancel(e.Dst)
	case core.SendWorker:
		r.Net.Send(r.Roles.Workers[e.To], &e.Msg)
	case core.Done:
		w.waited(w.station.Transport.Now())
		w.done = true
		if w.lead != nil {
			w.lead.dismiss()
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
		w.gone = append(w.gone, e.Piece)
		return
	}
	w.station.Net.SendBulk(to, link.TagPush|uint32(e.Piece), b, off, n, w.data.left)
}

// pieceLeft takes it that a piece has left on the data channel.
func (w *Side) pieceLeft(d comm.Done) {
	w.station.Net.Fail(d.Err)
	w.step(core.Input{Kind: core.PieceSent, Piece: int32(d.Tag % layout.PiecesMax)})
}

// expect receives a version of a shard into a buffer that begins at byte from of the arena.
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

// pieceCame takes a piece of a version that came on the data channel.
func (w *Side) pieceCame(d comm.Done) {
	p := &w.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	_, n := p.InArena()
	encoded := w.station.Routes.EncodesReplies()
	if encoded {
		n = d.N // at most that of its place
	}
	if d.Err != nil || d.N != n {
		w.station.Net.Whole(d, n, "reply of shard %s", w.station.Plan.Shards[p.Shard].Name)
		return
	}
	w.station.Net.Traffic.Received += int64(d.N)
	if !encoded || w.decode(p, w.enc.came(p.ID, d.N)) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: p.ID})
	}
}

// inlineCame takes a piece of a version that came in a frame; its header went before.
func (w *Side) inlineCame(piece int32, values []byte) {
	if w.decode(&w.station.Plan.Pieces[piece], values) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: piece})
	}
}

// Close gives the memory back, when nothing is in flight any more.
func (w *Side) Close() {
	w.station.Net.Fail(w.o.Device.Close()) // before the memory goes that it may have pinned
	for _, b := range w.arenas.own {
		b.Free()
	}
	w.enc.close()
	for _, b := range w.arenas.copies.beside {
		b.Free()
	}
}
