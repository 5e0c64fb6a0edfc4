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

// What a worker computes where a policy says so (ps/core/work.go): ranges of its own batch and of others', some samples at a time. The
// gradients of all that is computed of a task are added up; with the last samples they are handed over, layer by layer. A Cancel is
// heeded between two times, so that the last samples are known when their backward begins.
//
// What is computed beside an iteration is computed on the parameters that the iteration has read, while replies land: so all of it is
// computed on a copy of them, which is taken when an iteration of the worker's own begins.

// ranges is what a worker needs for it.
type ranges struct {
	params *comm.Buf      // those that the iteration reads: a copy of the arena
	iter   int64          // the worker's own that they were taken for, -1: none
	at     int            // the sample that is begun next
	n      int            // samples of the grain that was cut last
	last   bool           // it is the last
	cutOff bool           // whether one was cut: not where the run is over
	limit  int32          // no sample from here on is begun; of the task that is computed
	sums   *comm.Buf      // of the gradients so far, in the layout of the arena
	batch  workload.Batch // an owner's, whole
	owners []feed         // of each worker; the sampler is nil until it is needed
	most   int            // samples that the model takes at a time
	summed bool           // sums holds something
}

// makeRanges makes room for it, if the worker's work is given by a policy.
func (w *Side) makeRanges() error {
	r := w.station
	if r.Axes.Work == nil {
		return nil
	}
	if w.lead != nil || w.deltas.local != nil || w.arenas.direct.grads != nil || w.arenas.direct.params != nil {
		return fmt.Errorf("train: worker %d: its work is given by a policy, which is for workers without members, that push gradients of host memory", w.me)
	}
	most := 0
	for i := range r.Computes {
		most = max(most, layout.BatchOf(r.Config, len(r.Computes), i))
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
	w.ranges = &ranges{params: params, iter: -1, sums: sums, owners: make([]feed, len(r.Computes)), most: len(w.feed.batch.Y), batch: workload.NewBatch(r.Config.Model.Name, r.Set.Samples(), most)}
	return nil
}

// feedOf is where a worker's samples come from.
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

// begin takes note of a task before it is computed, and of how much of it.
func (g *ranges) begin(t core.Task) {
	if g == nil {
		return
	}
	g.limit = 1<<31 - 1
	if t.To > 0 {
		g.limit = t.To
	}
}

// cancel takes the end off the task that is computed.
func (g *ranges) cancel(to int32) { g.limit = min(g.limit, to) }

// computeRanges computes a task; false: the run has failed.
func (it *iteration) computeRanges(t core.Task) (ok bool) {
	w, g := it.w, it.w.ranges
	if it.allRead(); !it.over {
		return false // the run has failed
	}
	it.allWritable()
	if it.own {
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
	g.summed, it.head = false, wire.Header{}
	grain := int(t.Grain)
	if grain <= 0 || grain > g.most {
		grain = g.most
	}
	g.at, g.last = int(t.From), false
	for !g.last {
		g.cutOff = false
		w.site.poll()
		w.site.await(false, func() bool { return true }, func() { // it is the driver that cancels, and that knows of failures
			g.n = max(0, min(grain, min(g.batch.N, int(g.limit))-g.at))
			g.last = g.at+g.n >= min(g.batch.N, int(g.limit))
			g.cutOff = w.station.Net.Err() == nil
		})
		if !g.cutOff {
			return false
		}
		w.computeSome(g.batch.Part(g.at, g.at+g.n), g.last)
		g.at += g.n
	}
	return true
}

// computeSome computes some samples, none perhaps. With the last ones the sums of the layers are handed over.
func (w *Side) computeSome(b workload.Batch, last bool) {
	it, g := w.it, w.ranges
	if b.N > 0 {
		loss, correct := w.model.Forward(b, func(int) {})
		it.head.Samples, it.head.Correct, it.head.Loss = it.head.Samples+int64(b.N), it.head.Correct+int64(correct), it.head.Loss+loss
	}
	final := g.add
	if last {
		it.slowDown()
		w.site.report(it.forwarded, false)
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
		g.summed = true
	}
}

// add adds what was computed before to the gradients of a layer.
func (g *ranges) add(w *Side, layer int, computed bool) {
	for _, id := range w.pieces[layer] {
		p := &w.station.Plan.Pieces[id]
		grads, sums := w.arenas.grads.F32()[p.Lo:p.Hi], g.sums.F32()[p.Lo:p.Hi]
		switch {
		case computed && g.summed:
			optim.Sum(grads, grads, sums)
		case g.summed:
			copy(grads, sums)
		case !computed:
			clear(grads)
		}
	}
}
