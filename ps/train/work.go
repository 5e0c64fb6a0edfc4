package train

import (
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// A worker whose work is given by a policy (ps/core/work.go) computes ranges of its own batch and of other workers'
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
	hasSums  bool           // sums holds gradients
}

// makeRanges allocates the memory of ranges, if a policy gives the worker's work.
func (w *Side) makeRanges() error {
	r := w.station
	if r.Axes.Work == nil {
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
	params, err := w.alloc(bytes)
	if err != nil {
		return fmt.Errorf("arena for the parameters of an iteration: %w", err)
	}
	if err := w.bindModel(params, w.arenas.grads); err != nil {
		return err
	}
	w.ranges = &ranges{params: params, iter: -1, sums: sums, owners: make([]feed, r.Roles.Computes()), batchMax: len(w.feed.batch.Y), batch: workload.NewBatch(r.Config.Model.Name, r.Set.Samples(), batchMax)}
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

// begin notes the end of a task before it is computed.
func (g *ranges) begin(t core.Task) {
	if g == nil {
		return
	}
	g.limit = 1<<31 - 1
	if t.To > 0 {
		g.limit = t.To
	}
}

// cancel shortens the current task: it ends at sample to.
func (g *ranges) cancel(to int32) { g.limit = min(g.limit, to) }

// computeRanges computes a task. It returns false if the run has failed.
func (it *iteration) computeRanges(t core.Task) (ok bool) {
	w, g := it.w, it.w.ranges
	if it.awaitAllReadable(); !it.allReadable {
		return false
	}
	it.awaitAllWritable()
	if it.isOwn {
		copy(g.params.Bytes(), w.arenas.params.Bytes())
		g.iter = t.Iter
	}
	f, err := w.feedOf(int(t.Owner))
	if err != nil {
		w.station.Net.Fail(err)
		return false
	}
	f.rows = f.sampler.Batch(t.Iter, f.rows)
	g.batch.Take(w.station.Set.Train, f.rows)
	f.augment.Apply(g.batch.X, t.Iter)
	g.hasSums, it.header = false, wire.Header{}
	grain := int(t.Grain)
	if grain <= 0 || grain > g.batchMax {
		grain = g.batchMax
	}
	g.next, g.isLast = int(t.From), false
	for !g.isLast {
		g.hasGrain = false
		w.site.poll()
		w.site.await(false, func() bool { return true }, func() { // on the driver, which cancels tasks and knows of failures
			g.n = max(0, min(grain, min(g.batch.N, int(g.limit))-g.next))
			g.isLast = g.next+g.n >= min(g.batch.N, int(g.limit))
			g.hasGrain = w.station.Net.Err() == nil
		})
		if !g.hasGrain {
			return false
		}
		w.computeGrain(g.batch.Part(g.next, g.next+g.n), g.isLast)
		g.next += g.n
	}
	return true
}

// computeGrain computes the samples of a grain, which may be empty. With the last grain it hands over the sums of the
// layers.
func (w *Side) computeGrain(b workload.Batch, last bool) {
	it, g := w.it, w.ranges
	if b.N > 0 {
		loss, correct := w.model.Forward(b, func(int) {})
		it.header.Samples, it.header.Correct, it.header.Loss = it.header.Samples+int64(b.N), it.header.Correct+int64(correct), it.header.Loss+loss
	}
	final := g.add
	if last {
		it.slowDown()
		w.site.onDriver(it.forwarded, false)
		final = func(w *Side, layer int, computed bool) {
			g.add(w, layer, computed)
			it.ready(layer)
		}
	}
	if b.N > 0 {
		w.model.Backward(func(layer int) { final(w, layer, true) })
	} else {
		for layer := range slices.Backward(w.pieces) {
			final(w, layer, false)
		}
	}
	if !last {
		copy(g.sums.Bytes(), w.arenas.grads.Bytes())
		g.hasSums = true
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
