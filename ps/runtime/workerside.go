package runtime

import (
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/kernels"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/send"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// workerSide obeys the effects of a Worker node: it computes iterations, sends gradients from the arena that
// the kernels wrote them to, and receives parameters into the arena that the kernels read.
type workerSide struct {
	r       *rank
	node    *core.Worker
	me      int
	beside  bool // this rank serves too: compute on a goroutine of its own
	device  kernels.Device
	model   workload.Model
	params  *comm.Buf
	grads   *comm.Buf
	deltas  [][]optim.Run // per layer, what of its gradient is pushed as a delta
	local   *optim.Delta  // nil unless there are deltas
	copies  copies        // of shards that are not pulled before every iteration
	pieces  [][]int32     // per layer, the pieces that its gradient completes, in arena order
	sampler *workload.Sampler
	batch   workload.Batch
	rows    []int32
	slow    []configs.Slow
	out     []core.Effect // scratch

	todo     int64 // iteration that waits to be computed, -1: none
	done     bool
	samples  int64
	spans    metrics.Spans
	records  metrics.Recorder
	waitFrom time.Duration // when backward of the last iteration was over
	lastHead time.Duration // when the last reply header came
	blocked  time.Duration // before the current iteration
	usual    time.Duration // what an iteration's compute takes, smoothed, without injected slowness
	injected time.Duration // slowness that the faults ask of the current iteration
	paused   time.Duration // what that took
	warned   int64         // iteration whose wait was explained, -1: none
}

func newWorkerSide(r *rank) (*workerSide, error) {
	c := r.cfg
	me := r.roles.Worker(r.me)
	batch := batchOf(c, len(r.roles.Workers), me)
	device, err := r.o.NewDevice()
	if err != nil {
		return nil, err
	}
	model, err := workload.NewModel(c.ModelSpec(), r.set.Train.Cols(), r.set.Classes, device, batch)
	if err != nil {
		return nil, err
	}
	rows, err := workload.Partition(c.Data.Partition, r.set.Train.Rows(), len(r.roles.Workers), me, c.Seed)
	if err != nil {
		return nil, err
	}
	w := &workerSide{r: r, me: me, beside: r.roles.Server(r.me) >= 0, device: device, model: model,
		sampler: workload.NewSampler(rows, batch, c.Seed, me), rows: make([]int32, 0, batch), todo: -1, warned: -2,
		batch: workload.Batch{X: make([]float32, batch*r.set.Train.Cols()), Y: make([]int32, batch), N: batch, Cols: r.set.Train.Cols()}}
	arena := r.plan.Arena * shard.ElemBytes
	if w.params, err = r.t.Alloc(arena); err != nil {
		return nil, fmt.Errorf("parameter arena: %w", err)
	}
	if w.grads, err = r.t.Alloc(arena); err != nil {
		return nil, fmt.Errorf("gradient arena: %w", err)
	}
	model.Bind(r.plan.Views(w.params.F32()), r.plan.Views(w.grads.F32()))
	w.pieces = make([][]int32, len(model.Layers()))
	for _, p := range r.plan.Pieces {
		w.pieces[p.Layer] = append(w.pieces[p.Layer], p.ID)
	}
	if err := w.makeDeltas(); err != nil {
		return nil, err
	}
	for _, f := range c.Faults {
		if f.Worker == me || f.Worker < 0 {
			w.slow = append(w.slow, f.Slow)
		}
	}
	e, ok := send.Lookup(c.Send.Order)
	if !ok {
		return nil, fmt.Errorf("send.order %q is not built in", c.Send.Order)
	}
	w.node = core.NewWorker(int32(me), r.plan, e.New(), 0)
	if r.dir != "" {
		w.records.Max = recordsMax(c, len(r.roles.Workers))
	}
	w.node.HoldBack(r.schemeOf)
	w.node.KeepCopies(r.copyOf)
	return w, nil
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
	if in.Kind == core.Arrived && (in.Msg.Kind == wire.Reply || in.Msg.Kind == wire.Publish) {
		w.lastHead = w.r.t.Now()
	}
	w.out = w.node.Step(in, w.out[:0])
	for i := range w.out {
		w.obey(&w.out[i])
	}
}

func (w *workerSide) obey(e *core.Effect) {
	r := w.r
	switch e.Kind {
	case core.Send:
		r.send(r.roles.Servers[e.To], e.Msg)
	case core.SendPiece:
		p := r.plan.Pieces[e.Piece]
		off, n := at(p)
		r.bytesSent += int64(n)
		in := core.Input{Kind: core.PieceSent, Piece: e.Piece}
		r.t.Isend(comm.Peer(r.roles.Servers[e.To]), comm.Data, tagPush|uint32(e.Piece), w.grads, off, n, func(d comm.Done) {
			r.fail(d.Err)
			w.step(in)
		})
	case core.Expect:
		w.expect(e, w.params, 0)
	case core.ExpectBeside, core.Adopt, core.Keep, core.AddLocal:
		w.obeyCopies(e)
	case core.Compute:
		w.waited()
		w.todo = e.Iter
		if w.beside {
			go w.compute(e.Iter, r.t.Post, time.Sleep)
		}
	case core.Remap:
		r.fail(fmt.Errorf("runtime: worker %d has the map of the shards of epoch %d, a server that of epoch %d; start all ranks from one checkpoint", w.me, r.plan.Epoch, e.Iter))
	case core.Done:
		w.waited()
		w.done = true
	default:
		panic(fmt.Sprintf("runtime: worker effect %v", e))
	}
}

// expect receives a version of a shard into a buffer that begins at byte from of the arena.
func (w *workerSide) expect(e *core.Effect, into *comm.Buf, from int) {
	r := w.r
	sh := &r.plan.Shards[e.Shard]
	server := comm.Peer(r.roles.Servers[e.To])
	for _, p := range sh.Pieces {
		off, n := at(p)
		in := core.Input{Kind: core.PieceLanded, Piece: p.ID}
		r.t.Irecv(server, comm.Data, tagReply|uint32(p.ID), into, off-from, n, func(d comm.Done) {
			if !r.whole(d, n, "reply of shard %s", sh.Name) {
				return
			}
			r.bytesReceived += int64(n)
			w.step(in)
		})
	}
}

// waited splits the time since backward was over: blocked until the last reply began, pull until it was in.
func (w *workerSide) waited() {
	now := w.r.t.Now()
	w.blocked = max(0, w.lastHead-w.waitFrom)
	w.spans.Add(metrics.Blocked, w.blocked)
	pull := now - max(w.lastHead, w.waitFrom)
	w.spans.Add(metrics.Pull, pull)
	w.records.Waited(w.blocked, pull)
}

// compute runs one iteration. report runs a function on the goroutine that drives; pause sleeps.
func (w *workerSide) compute(iter int64, report func(func()), pause func(time.Duration)) {
	defer w.r.guard(nil, nil)
	now := w.r.t.Now
	start := now()
	w.rows = w.sampler.Batch(iter, w.rows)
	w.r.set.Train.Fill(w.batch.X, w.batch.Y, w.rows)
	loss, correct := w.model.Forward(w.batch, nil)
	forward := now() - start
	w.paused, w.injected = 0, w.stretch(iter, forward)
	if w.injected > 0 {
		from := now()
		pause(w.injected)
		w.paused = now() - from // sleeps overshoot, and what is not ours must not count as ours in the next iteration
	}
	in := core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: int64(w.batch.N), Correct: int64(correct), Loss: loss, Blocked: int64(w.blocked)}}
	report(func() { w.step(in) })
	var pushing time.Duration
	w.model.Backward(func(layer int) {
		for _, q := range w.deltas[layer] {
			w.local.Step(w.grads.F32(), w.params.F32(), q, iter, int64(w.batch.N))
		}
		from := now()
		report(func() {
			for _, p := range w.pieces[layer] {
				w.step(core.Input{Kind: core.PieceReady, Piece: p})
			}
		})
		pushing += now() - from
	})
	end := now()
	own := end - start - pushing - w.paused
	w.usual = smooth(w.usual, own)
	report(func() {
		w.samples += int64(w.batch.N)
		w.spans.Add(metrics.Compute, end-start-pushing)
		w.spans.Add(metrics.Push, pushing)
		w.records.Add(metrics.Iteration{Iter: iter, Start: start - w.r.trainStart, Compute: end - start - pushing, Injected: w.injected, Push: pushing})
		w.waitFrom = end
		w.step(core.Input{Kind: core.TaskDone})
	})
}

// smooth is an exponential mean with weight 1/4 for the newest.
func smooth(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}

// stretch is how long the injected slowness holds this iteration up. Before there is an iteration to go by, a
// whole one is taken as three times its forward pass.
func (w *workerSide) stretch(iter int64, forward time.Duration) time.Duration {
	usual := w.usual
	if usual == 0 {
		usual = 3 * forward
	}
	var d time.Duration
	for _, s := range w.slow {
		if iter < s.From || s.Until > 0 && iter >= s.Until {
			continue
		}
		d += s.Sleep
		if s.Factor > 1 {
			d += time.Duration((s.Factor - 1) * float64(usual))
		}
	}
	return d
}

// inline runs the iterations of a rank that only works, on the goroutine that drives.
func (w *workerSide) inline() {
	iter := w.todo
	w.todo = -1
	w.compute(iter, func(f func()) { f(); w.r.t.Tick() }, w.sleep)
}

// sleep drives the transport until the time is over: a slow worker computes slowly, but its messages move.
func (w *workerSide) sleep(d time.Duration) {
	end := w.r.t.Now() + d
	t := time.AfterFunc(d, func() { w.r.t.Post(func() {}) })
	defer t.Stop()
	w.r.fail(w.r.drive(func() bool { return w.r.t.Now() >= end }))
}

func (w *workerSide) close() {
	w.params.Free()
	w.grads.Free()
	for _, b := range w.copies.beside {
		b.Free()
	}
	w.r.fail(w.device.Close())
}
