package runtime

import (
	"fmt"
	"slices"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/workload"
)

// workerSide obeys the effects of a Worker node: it computes iterations, sends gradients from the arena that
// the kernels wrote them to, and receives parameters into the arena that the kernels read.
type workerSide struct {
	r       *rank
	node    *core.Worker // nil of a member, for which another rank of its node pushes and pulls
	me      int          // index among the workers; of a member, its leader's
	index   int          // among the ranks that compute: whose samples it has
	device  kernels.Device
	model   workload.Model
	params  *comm.Buf
	grads   *comm.Buf
	deltas  [][]optim.Run // per layer, what of its gradient is pushed as a delta
	local   *optim.Delta  // nil unless there are deltas
	own     []*comm.Buf   // memory to give back; windows go with the transport
	copies  copies        // of shards that are not pulled before every iteration
	direct  direct        // of what MPI sends from the device and receives there
	enc     encoder       // of what does not travel as it is
	pieces  [][]int32     // per layer, the pieces that its gradient completes, in arena order
	sampler *workload.Sampler
	augment *workload.Augmenter
	batch   workload.Batch
	rows    []int32
	slow    slowness
	out     []core.Effect // scratch
	gone    []int32       // pieces that left in frames, for the node when the effects before are obeyed
	into    []landing     // per shard: where the version that it waits for lands
	landed  comm.Handler  // of the pieces that come on the data channel
	left    comm.Handler  // of those that go there

	keeps    [][]float32 // copies of what it saves, for a checkpoint that is being written
	site     site        // where it computes
	it       *iteration
	with     exchange
	lead     *leading // that is it, where the worker has members
	member   *member  // the same of a member
	done     bool
	samples  int64
	spans    metrics.Spans
	records  metrics.Recorder
	pace     metrics.Pace
	waits    bool          // nothing is computed: an iteration, or a layer of one, cannot start
	waitFrom time.Duration // when that began
	lastHead time.Duration // when the last reply header came
	blocked  time.Duration // before the current iteration and between its layers
	pull     time.Duration // the same
	usual    time.Duration // what an iteration's computing takes, smoothed, without injected slowness
	warned   int64         // iteration whose wait was explained, -1: none
}

// landing is where the pieces of a version go: a buffer that begins at byte from of the arena.
type landing struct {
	buf  *comm.Buf
	from int
}

func newWorkerSide(r *rank) (*workerSide, error) {
	c := r.cfg
	me, index := r.roles.Leader(r.me), slices.Index(r.computes, r.me)
	batch := layout.BatchOf(c, len(r.computes), index)
	device := r.unit.Device
	model, err := workload.NewModel(c.ModelSpec(), r.set.Samples(), device, batch)
	if err != nil {
		return nil, err
	}
	rows, err := workload.Partition(c.Data.Partition, r.set.Train.Rows(), len(r.computes), index, c.Seed)
	if err != nil {
		return nil, err
	}
	w := &workerSide{r: r, me: me, index: index, device: device, model: model,
		sampler: workload.NewSampler(rows, batch, c.Seed, index), rows: make([]int32, 0, batch), warned: -2,
		augment: workload.NewAugmenter(c.Data.Augment, r.set.Image, c.Seed, index),
		batch:   workload.NewBatch(c.Model.Name, r.set.Samples(), batch)}
	w.into, w.landed, w.left = make([]landing, len(r.plan.Shards)), w.pieceCame, w.pieceLeft
	w.pieces = make([][]int32, len(model.Layers()))
	for _, p := range r.plan.Pieces {
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
	w.pace = metrics.NewPace(len(r.computes))
	if r.dir != "" || r.o.Iterations {
		w.records.Max = layout.RecordsMax(c, len(r.computes))
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
	w.makeNode(r.from)
	return w, nil
}

// makeNode makes the node, as it goes on from a checkpoint or a pause, or nil: as it begins.
func (w *workerSide) makeNode(q *origin) {
	r := w.r
	w.node = r.build().Worker(w.me, q.start().Clock(w.me), func(id int32) bool { return r.routes.Shares(id, int32(w.me)) })
}

// makeDeltas finds what is pushed as deltas: for that the worker has an optimizer of its own.
func (w *workerSide) makeDeltas() error {
	r := w.r
	w.deltas = make([][]optim.Run, len(w.pieces))
	any := false
	for i := range r.plan.Pieces {
		p := &r.plan.Pieces[i]
		runs := r.cfg.DeltaRuns(r.plan, p)
		w.deltas[p.Layer] = append(w.deltas[p.Layer], runs...)
		any = any || len(runs) > 0
	}
	if !any {
		return nil
	}
	update, err := r.cfg.Update()
	if err != nil {
		return err
	}
	w.local = optim.NewDelta(r.plan.Arena, update)
	return nil
}

func (w *workerSide) step(in core.Input) {
	if w.r.reduce != nil {
		w.r.reduce.step(in)
		return
	}
	w.r.net.Begin()
	if in.Kind == core.Arrived && (in.Msg.Kind == wire.Reply || in.Msg.Kind == wire.Publish) {
		w.lastHead = w.r.net.Clock()
	}
	for next := 0; ; next++ {
		in.At = w.r.now()
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
	w.r.net.End()
}

func (w *workerSide) obey(e *core.Effect) {
	r := w.r
	switch e.Kind {
	case core.Send:
		r.net.Send(r.roles.Servers[e.To], &e.Msg)
		if e.Msg.Kind == wire.Pull && r.routes.Keyed() != nil {
			w.sendKeys(e.Msg.Shard, r.roles.Servers[e.To])
		}
	case core.SendBarrier:
		r.net.Send(0, &e.Msg)
	case core.SendPiece:
		w.sendPiece(e)
	case core.Expect:
		w.expect(e, w.params, 0)
	case core.Read:
		w.readVersion(e)
	case core.ExpectBeside, core.Adopt, core.Keep, core.AddLocal:
		w.obeyCopies(e)
	case core.Compute:
		w.waited(w.r.t.Now())
		if w.lead != nil {
			w.lead.begin(e.Iter)
		}
		w.site.start(e.Iter)
	case core.Remap:
		r.net.Fail(fmt.Errorf("runtime: worker %d has the map of the shards of epoch %d, a server that of epoch %d; start all ranks from one checkpoint", w.me, r.plan.Epoch, e.Iter))
	case core.Done:
		w.waited(w.r.t.Now())
		w.done = true
		if w.lead != nil {
			w.lead.dismiss()
		}
		r.log.Info("the last piece has left", "send", w.node.Sending())
	default:
		panic(fmt.Sprintf("runtime: worker effect %v", e))
	}
}

// sendPiece sends a piece of the gradients.
func (w *workerSide) sendPiece(e *core.Effect) {
	to := w.r.roles.Servers[e.To]
	way := w.r.routes.Push(e.Piece, int32(w.me))
	if way == layout.InPlace {
		w.r.net.SendThere(to, e.Piece)
		return
	}
	b, off, n := w.encoded(&w.r.plan.Pieces[e.Piece])
	if way == layout.InFrame {
		w.r.net.SendInline(to, wire.PushPiece, e.Piece, b.Bytes()[off:off+n])
		w.gone = append(w.gone, e.Piece)
		return
	}
	w.r.net.SendBulk(to, link.TagPush|uint32(e.Piece), b, off, n, w.left)
}

// pieceLeft takes it that a piece has left on the data channel.
func (w *workerSide) pieceLeft(d comm.Done) {
	w.r.net.Fail(d.Err)
	w.step(core.Input{Kind: core.PieceSent, Piece: int32(d.Tag % layout.PiecesMax)})
}

// expect receives a version of a shard into a buffer that begins at byte from of the arena.
func (w *workerSide) expect(e *core.Effect, into *comm.Buf, from int) {
	r := w.r
	w.into[e.Shard] = landing{into, from}
	sh := &r.plan.Shards[e.Shard]
	server := comm.Peer(r.roles.Servers[e.To])
	for i := range sh.Pieces {
		if p := &sh.Pieces[i]; r.routes.Reply(p.ID, int32(w.me)) == layout.OnData {
			b, off, n := w.inboxOf(p)
			r.t.Irecv(server, comm.Data, link.TagReply|uint32(p.ID), b, off, n, w.landed)
		}
	}
}

// pieceCame takes a piece of a version that came on the data channel.
func (w *workerSide) pieceCame(d comm.Done) {
	p := &w.r.plan.Pieces[d.Tag%layout.PiecesMax]
	b, off, n := w.inboxOf(p)
	if d.Err != nil || !w.r.routes.EncodesReplies() && d.N != n {
		w.r.net.Whole(d, n, "reply of shard %s", w.r.plan.Shards[p.Shard].Name)
		return
	}
	w.r.net.Traffic.Received += int64(d.N)
	if w.decode(p, b.Bytes()[off:off+d.N], true) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: p.ID})
	}
}

// inlineCame takes a piece of a version that came in a frame; its header went before.
func (w *workerSide) inlineCame(piece int32, values []byte) {
	if w.decode(&w.r.plan.Pieces[piece], values, false) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: piece})
	}
}

func (w *workerSide) close() {
	w.r.net.Fail(w.device.Close()) // before the memory goes that it may have pinned
	for _, b := range w.own {
		b.Free()
	}
	w.enc.close()
	for _, b := range w.copies.beside {
		b.Free()
	}
}
