package train

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/tasks"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/policy/work/code"
	"fluentps/kernels"
	"fluentps/ps/workload"
)

// A worker whose work is given by a policy (internal/core/task.go) computes ranges of its own batch and of other workers'
// batches, a grain of samples at a time. It adds up the gradients of a task, and hands them over, layer by layer, with the
// last grain. A Cancel takes effect between two grains, so that the last grain is known when its backward begins.
//
// Replies arrive while a worker computes ranges of others beside its own iteration, and all of it must use the parameters
// of the iteration. So the worker computes on a copy of the parameters, which it takes when its own iteration begins.

// ranges is what such a worker needs.
type ranges struct {
	params   *comm.Buf      // the parameters of the iteration: a copy of the arena
	iter     int64          // the worker's own iteration that params belongs to; -1: none
	next     int            // first sample of the next grain
	n        int            // samples of the current grain
	isLast   bool           // the current grain is the last one
	hasGrain bool           // the driver has cut a grain; false: the run has failed
	limit    int32          // end of the current task: the first sample that is not computed
	sums     *comm.Buf      // the gradients so far, in the layout of the arena
	batch    workload.Batch // the whole batch of an owner
	owners   []feed         // by worker; the sampler is nil until used
	batchMax int            // samples that the model takes at a time
	ownBatch int64          // samples of the worker's own batch
	hasSums  bool           // sums holds gradients
	isOwn    bool           // the current task is the first one of the worker's own iteration
	keep     core.Keeping   // of the current task
	kept     []keptTask     // of the iteration; of a code their sum
	code     *code.Code     // nil: pushes are not coded
	me       int            // the worker, as the code numbers it
	until    time.Duration  // no grain begins later than this after the first one; 0: no limit
	began    time.Duration  // when the first grain began
	slow     slowGrains
}

// keptTask is a task whose gradients are pushed later.
type keptTask struct {
	task   core.Task
	header wire.Header
	grads  *comm.Buf // in the layout of the arena
	isFree bool      // it was pushed, or belongs to an earlier iteration
}

// slowGrains is the slowness of the current task, which each grain gets in proportion to its samples.
type slowGrains struct {
	before time.Duration    // own computing of the grains before the last one
	asked  straggler.Amount // of the last grain
	slept  time.Duration    // in the last grain
}

// makeRanges allocates the memory of ranges, if a policy gives the worker's work.
func (w *Side) makeRanges() error {
	r := w.station
	if !r.Build().HasTasks() {
		return nil
	}
	if w.leader != nil || w.deltas.local != nil || w.arenas.direct.grads != nil || w.arenas.direct.params != nil {
		return fmt.Errorf("train: worker %d: a policy gives its work, so it must have no members and push gradients from host memory", w.me)
	}
	batchMax := 0
	for i := range r.Roles.Computing() {
		batchMax = max(batchMax, layout.BatchOf(r.Config, r.Roles.Computes(), i))
	}
	bytes := r.Plan.Arena * shard.ElemBytes
	sums, err := w.alloc(bytes)
	if err != nil {
		return fmt.Errorf("arena for the sums of ranges: %w", err)
	}
	params, err := w.room(bytes)
	if err != nil {
		return fmt.Errorf("arena for the parameters of an iteration: %w", err)
	}
	if err := w.bindModel(params, w.arenas.grads); err != nil {
		return err
	}
	k, err := r.Config.Code(r.Roles.Computes())
	if err != nil {
		return fmt.Errorf("train: work.code: %w", err)
	}
	var kept []keptTask
	for range tasks.Kept(r.Config.Work) {
		b, err := w.alloc(bytes)
		if err != nil {
			return fmt.Errorf("arena for gradients that are pushed later: %w", err)
		}
		kept = append(kept, keptTask{grads: b, isFree: true})
	}
	w.ranges = &ranges{kept: kept, code: k, me: w.index, params: params, iter: -1, sums: sums,
		owners: make([]feed, r.Roles.Computes()), batchMax: len(w.feed.batch.Y),
		ownBatch: int64(layout.BatchOf(r.Config, r.Roles.Computes(), w.index)),
		batch:    workload.NewBatch(r.Config.Model.Name, r.Set.Samples(), batchMax)}
	return nil
}

// feedOf returns the feed of a worker.
func (w *Side) feedOf(owner int) (*feed, error) {
	if owner == w.index {
		return &w.feed, nil
	}
	f := &w.ranges.owners[owner]
	if f.sampler != nil {
		return f, nil
	}
	var err error
	*f, err = newFeed(w.station, owner)
	return f, err
}

// beginTask prepares a task before it is computed. It copies the parameters of the worker's own iteration: the replies that follow
// it may land at any time from now on.
func (w *Side) beginTask(t core.Task) {
	g := w.ranges
	if g == nil {
		return
	}
	if g.isOwn = t.Owner == int32(w.me) && g.iter != t.Iter; g.isOwn {
		copy(g.params.Bytes(), w.arenas.params.Bytes())
		w.holdParameters(false)
		w.useThreads(t.Threads)
		g.iter = t.Iter
		for i := range g.kept {
			g.kept[i].isFree = true
		}
	}
	g.limit, g.until, g.keep = 1<<31-1, t.Until, t.Keep
	if t.To > 0 {
		g.limit = t.To
	}
}

// holdParameters tells the model whether its parameters have changed: a GPU gets them once an iteration, not with each grain.
func (w *Side) holdParameters(held bool) {
	if m, ok := w.model.(workload.Holder); ok {
		m.Hold(held)
	}
}

// useThreads makes the worker's kernels use n threads; 0: as many as before.
func (w *Side) useThreads(n int32) {
	if n > 0 {
		if d, ok := w.o.Device.(kernels.Threaded); ok { // configs refuses others
			d.SetThreads(int(n))
		}
	}
	w.counters.threads += int64(n)
}

// cancel shortens the current task: it ends at sample to.
func (g *ranges) cancel(to int32) { g.limit = min(g.limit, to) }

// computeRanges computes a task. It returns false if the run has failed.
func (it *iteration) computeRanges(t core.Task) (ok bool) {
	w, g := it.w, it.w.ranges
	if it.isOwn && !it.startLate(t.Iter) {
		return false
	}
	if it.awaitAllReadable(); !it.allReadable {
		return false
	}
	it.awaitAllWritable()
	if t.Keep == core.Again {
		it.pushKept(t)
		return true
	}
	f, err := w.feedOf(int(t.Owner))
	if err != nil {
		return w.failed(t.Iter, "rows", err)
	}
	f.rows = f.sampler.Batch(t.Iter, f.rows)
	if err := g.batch.Take(w.station.Set.Train, f.rows); err != nil {
		return w.failed(t.Iter, "rows", err)
	}
	f.augment.Apply(g.batch.X, t.Iter)
	g.hasSums, it.header = false, wire.Header{}
	grain := int(t.Grain)
	if grain <= 0 || grain > g.batchMax {
		grain = g.batchMax
	}
	g.next, g.isLast, g.began, g.slow = int(t.From), false, w.station.Transport.Now(), slowGrains{}
	for !g.isLast {
		g.hasGrain = false
		w.site.poll()
		w.site.await(false, func() bool { return true }, func() { w.cutGrain(int(t.From), grain) })
		if !g.hasGrain {
			return false
		}
		if !w.computeGrain(g.batch.Part(g.next, g.next+g.n), g.isLast) {
			return false
		}
		g.next += g.n
	}
	if t.Keep == core.Kept {
		it.keep(t)
	}
	return true
}

// keep keeps the gradients of a task. Of a code it keeps their sum, with the header of the worker's own batch.
func (it *iteration) keep(t core.Task) {
	w, g := it.w, it.w.ranges
	if g.code != nil && t.Owner != int32(w.me) {
		g.encode(t, w.arenas.grads)
		return
	}
	k := g.keptAt(func(k *keptTask) bool { return k.isFree })
	h := &it.header // the driver writes another field of it
	k.task, k.header, k.isFree = t, wire.Header{Samples: h.Samples, Correct: h.Correct, Loss: h.Loss}, false
	if g.code != nil {
		clear(k.grads.F32())
		g.encode(t, w.arenas.grads)
		return
	}
	copy(k.grads.Bytes(), w.arenas.grads.Bytes())
}

// encode adds the gradients of a task to the codeword.
func (g *ranges) encode(t core.Task, grads *comm.Buf) {
	of, factors := g.code.Row(g.me)
	optim.AddDelta(g.kept[0].grads.F32(), grads.F32(), factors[slices.Index(of, t.Owner)])
}

// keptAt finds a kept task.
func (g *ranges) keptAt(is func(k *keptTask) bool) *keptTask {
	for i := range g.kept {
		if is(&g.kept[i]) {
			return &g.kept[i]
		}
	}
	panic(fmt.Sprintf("train: a task has no place among %d kept ones, or is not kept", len(g.kept)))
}

// pushKept hands over the gradients of a task that was computed before.
func (it *iteration) pushKept(t core.Task) {
	w, g := it.w, it.w.ranges
	k := g.keptAt(func(k *keptTask) bool { return !k.isFree && k.task.Owner == t.Owner && k.task.Iter == t.Iter })
	k.isFree = true
	g.slow, it.header = slowGrains{}, k.header
	w.site.onDriver(it.forwarded, false)
	copy(w.arenas.grads.Bytes(), k.grads.Bytes())
	w.o.Timeline.Turns()
	for layer := range slices.Backward(w.pieces) {
		it.ready(layer)
	}
}

// cutGrain cuts the next grain. It runs on the driver, which cancels tasks and knows of failures.
func (w *Side) cutGrain(from, grain int) {
	g := w.ranges
	if w.station.Net.Err() != nil {
		return
	}
	end := min(g.batch.N, int(g.limit))
	if g.until > 0 && g.next > from && w.station.Transport.Now()-g.began > g.until {
		end = g.next
	}
	g.n = max(0, min(grain, end-g.next))
	w.step(core.Input{Kind: core.StepBegun, Msg: wire.Header{Samples: int64(g.next + g.n)}})
	end = min(end, int(g.limit)) // the policy may have given samples away, but none of this grain
	g.isLast = g.next+g.n >= end
	g.hasGrain = w.station.Net.Err() == nil
}

// computeGrain computes the samples of a grain, which may be empty. With the last grain it hands over the sums of the
// layers. It returns false if the run has failed.
func (w *Side) computeGrain(b workload.Batch, last bool) (ok bool) {
	it, g := w.it, w.ranges
	from := w.station.Transport.Now()
	w.o.Timeline.Begin(it.rec.Iter)
	if b.N > 0 {
		loss, correct, err := w.model.Forward(b, nil)
		if err != nil {
			return w.failed(it.rec.Iter, "forward", err)
		}
		w.lookAtLoss(loss, it.rec.Iter, &b)
		w.o.Timeline.Forwarded()
		w.holdParameters(true)
		it.header.Samples, it.header.Correct, it.header.Loss = it.header.Samples+int64(b.N), it.header.Correct+int64(correct), it.header.Loss+loss
	}
	final := g.keepSums
	if last {
		it.slowGrain(b.N, forwardsPerGrain*(w.station.Transport.Now()-from), true)
		w.site.onDriver(it.forwarded, false)
		final = func(w *Side, layer int) {
			g.add(w, layer, b.N > 0)
			if g.keep != core.Kept && it.clip == nil {
				it.ready(layer)
			}
		}
	}
	w.o.Timeline.Turns()
	if b.N > 0 {
		if err := w.model.Backward(func(layer int) {
			it.turned(layer)
			final(w, layer)
		}); err != nil {
			return w.failed(it.rec.Iter, "backward", err)
		}
	} else {
		for layer := range slices.Backward(w.pieces) {
			final(w, layer)
		}
	}
	if last && it.clip != nil {
		if it.clipSums(); g.keep != core.Kept {
			it.readyAll()
		}
	}
	w.o.Timeline.Backwarded()
	if !last {
		it.slowGrain(b.N, w.station.Transport.Now()-from, false)
		g.hasSums = true
	}
	return w.keepScript(it.rec.Iter)
}

// forwardsPerGrain is how long a grain computes, in times of its forward pass [R]: backward has two products where forward has one.
const forwardsPerGrain = 3

// slowGrain slows a grain down that has computed, or is expected to compute, for own.
func (it *iteration) slowGrain(n int, own time.Duration, last bool) {
	w, g := it.w, it.w.ranges
	amount := w.slow.to.Part(it.slowAt(), int64(g.next), int64(g.next+n), g.ownBatch)
	asked := amount.Of(own)
	slept := time.Duration(0)
	it.sleep(max(asked/2, asked+w.slow.owed), &slept)
	it.timing.slept += slept
	if last {
		g.slow.asked, g.slow.slept = amount, slept
	} else {
		g.slow.before += own
		w.slow.settle(asked, slept)
	}
	it.pause()
}

// settleSlowness carries over what was asked for and not slept in a task whose own computing took own.
func (it *iteration) settleSlowness(own time.Duration) {
	s, g := &it.w.slow, it.w.ranges
	if g == nil {
		s.finished(it.slowAt(), it.timing.forward, own, it.timing.slept)
		return
	}
	s.settle(g.slow.asked.Of(own-g.slow.before), g.slow.slept)
}

// keepSums adds the gradients of a layer to the sums so far, while the cache still holds them: a grain that is not the last one costs no
// pass of its own over the sums.
func (g *ranges) keepSums(w *Side, layer int) {
	for _, id := range w.pieces[layer] {
		p := &w.station.Plan.Pieces[id]
		grads, sums := w.arenas.grads.F32()[p.Lo:p.Hi], g.sums.F32()[p.Lo:p.Hi]
		if g.hasSums {
			optim.Sum(sums, sums, grads)
		} else {
			copy(sums, grads)
		}
	}
}

// add adds the sums so far to the gradients of a layer.
func (g *ranges) add(w *Side, layer int, computed bool) {
	for _, id := range w.pieces[layer] {
		p := &w.station.Plan.Pieces[id]
		grads, sums := w.arenas.grads.F32()[p.Lo:p.Hi], g.sums.F32()[p.Lo:p.Hi]
		switch {
		case computed && g.hasSums:
			optim.Sum(grads, grads, sums)
		case g.hasSums:
			copy(grads, sums)
		case !computed:
			clear(grads)
		}
	}
}
