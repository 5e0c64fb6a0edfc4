package sim

import (
	"fmt"

	"fluentps/kernels"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// Gradients makes a run compute: every worker trains a replica of the model, on the rows and with the seeds that it
// would have under the runtime, and its pushes, versions and replies carry numbers. Times stay those of the models.
type Gradients struct {
	Set    *workload.Set
	Device kernels.Device // computes all replicas, one after the other; Run does not close it
	// Initial gives parameters their first values; nil: they follow from the seed.
	Initial workload.Initial
}

// floats are the numbers of a run with real gradients. They follow the decisions and are no part of them, but for
// train.stop.target and a loss that is not a number, which end the run, and the norms of pushes for schemes that ask.
type floats struct {
	s      *simulation
	set    *workload.Set
	params []workload.Param
	model  workload.Model // bound to the replica that computes
	batch  workload.Batch
	rows   []int32

	replicas []replica
	deltas   []optim.Run         // of the arena, what is pushed as deltas
	stores   []store             // per shard
	onWay    map[int32][]float32 // by transfer: a piece of a push that has left while its worker computes on
	view     *view
	coded    coded
	most     int64 // bytes that all of it may take
}

// replica is what one worker computes with.
type replica struct {
	params, grads []float32              // arenas
	residual      []float32              // arena: what its pushes have left out; nil where the codec keeps none
	mail          []float32              // arena: a version that has left its server and not landed, or is published and not adopted; there is one per shard at most
	kept          map[[2]int32][]float32 // by shard and slot: pushes of its own
	views         [2][][]float32
	sampler       *workload.Sampler
	augment       *workload.Augmenter
	local         *optim.Delta // nil unless there are deltas
	loss          float64      // of its last iteration
	correct       int
	flying        int     // pieces of its pushes that have not landed and whose numbers are in grads alone, which may not change meanwhile
	unsent        []int32 // transfers of them that have not left, of shards of which the worker keeps a copy
}

// store is the memory of one shard on its server, by the node's numbers; nil until used.
type store struct {
	sh    *shard.Shard
	bufs  [][]float32 // versions
	slots [][]float32 // staged pushes
	math  *optim.Store
}

func newFloats(s *simulation) (*floats, error) {
	g, c := s.o.Gradients, s.cfg
	f := &floats{s: s, set: g.Set, replicas: make([]replica, len(s.workers)), stores: make([]store, len(s.plan.Shards))}
	batch := 0
	for i := range s.workers {
		batch = max(batch, int(s.workers[i].batch))
	}
	f.batch = workload.NewBatch(c.Model.Name, f.set.Samples(), batch)
	var err error
	if f.model, err = workload.NewModel(c.ModelSpec(), f.set.Samples(), g.Device, batch); err != nil {
		return nil, err
	}
	f.params = workload.Params(f.model)
	update, err := c.Update()
	if err != nil {
		return nil, err
	}
	for i := range s.plan.Pieces {
		f.deltas = append(f.deltas, c.DeltaRuns(s.plan, &s.plan.Pieces[i])...)
	}
	f.coded = newCoded(c, s.plan)
	snapshots, err := f.limit(update)
	if err != nil {
		return nil, err
	}
	for i := range f.stores {
		if err := f.makeStore(&s.plan.Shards[i], update); err != nil {
			return nil, err
		}
	}
	for i := range f.replicas {
		if err := f.makeReplica(i, update); err != nil {
			return nil, err
		}
	}
	f.view, err = newView(f, c.ModelSpec(), snapshots)
	return f, err
}

// limit says how many snapshots there is room for, or that the run may need more memory than cluster.memory_max: the
// arenas of all workers and the stores of all servers are in one process.
func (f *floats) limit(update optim.Update) (snapshots int64, err error) {
	c, p, n := f.s.cfg, f.s.plan, int64(len(f.replicas))
	arena := int64(p.Arena) * shard.ElemBytes
	each := int64(3)
	if len(f.deltas) > 0 {
		each += int64(update.Rule.State())
	}
	if c.Payload.Residual() {
		each++
	}
	f.most = int64(len(f.coded.wire)) + arena + n*(each*arena+f.s.copyBytes()) // one snapshot is evaluated
	for i := range p.Shards {
		rule := &c.Sync[p.Shards[i].Rule]
		slots, means, err := core.Most(rule.InTurn(), int(n))
		if err != nil {
			return 0, err
		}
		vectors := n + 2 + int64(slots) + 1 + int64(means)
		if c.Optimized(&p.Shards[i]) {
			vectors += int64(update.Rule.State())
		}
		f.most += vectors * p.Shards[i].Bytes()
	}
	if f.most > c.Cluster.MemoryMax || f.most < 0 {
		return 0, fmt.Errorf("real gradients of %d workers may need %s in this process, and cluster.memory_max is %s: the model has %s, a worker keeps %d arenas of that size and the servers up to %s in versions and staged pushes; simulate fewer workers, raise cluster.memory_max, or leave simulate.gradients out",
			n, metrics.Size(f.most), metrics.Size(c.Cluster.MemoryMax), metrics.Size(arena), each, metrics.Size(f.most-arena-n*each*arena))
	}
	return min(snapshotsMax, 1+(c.Cluster.MemoryMax-f.most)/arena), nil
}

func (f *floats) makeStore(sh *shard.Shard, update optim.Update) error {
	st, b := &f.stores[sh.ID], f.s.build()
	*st = store{sh: sh, bufs: make([][]float32, core.Buffers(len(f.replicas), false)), math: b.Store(sh.ID, update)}
	b.Initial = f.s.o.Gradients.Initial
	return b.Fill(st.vector(st.bufs, 0), sh, f.params)
}

func (f *floats) makeReplica(i int, update optim.Update) error {
	c, w := f.s.cfg, &f.replicas[i]
	rows, err := workload.Partition(c.Data.Partition, f.set.Train.Rows(), len(f.replicas), i, c.Seed)
	if err != nil {
		return err
	}
	n := f.s.plan.Arena
	w.params, w.grads, w.mail = make([]float32, n), make([]float32, n), make([]float32, n)
	if c.Payload.Residual() {
		w.residual = make([]float32, n)
	}
	w.views = [2][][]float32{f.s.plan.Views(w.params), f.s.plan.Views(w.grads)}
	w.sampler = workload.NewSampler(rows, int(f.s.workers[i].batch), c.Seed, i)
	w.augment = workload.NewAugmenter(c.Data.Augment, f.set.Image, c.Seed, i)
	if len(f.deltas) > 0 {
		w.local = optim.NewDelta(n, update)
	}
	return nil
}

// compute runs one iteration, at the virtual time at which the last of its parameters is there. Its gradients are in the
// arena at once, and leave it when the model of computing says that they are ready.
func (f *floats) compute(me int32, iter int64) {
	w, n := &f.replicas[me], int(f.s.workers[me].batch)
	f.keepUnsent(w)
	if w.flying > 0 {
		f.s.check.fail("immutable gradients: worker %d computes iteration %d while %d pieces of its last push have not landed", me, iter, w.flying)
	}
	f.rows = w.sampler.Batch(iter, f.rows)
	f.batch.Take(f.set.Train, f.rows)
	w.augment.Apply(f.batch.X, iter)
	f.model.Bind(w.views[0], w.views[1])
	w.loss, w.correct = f.model.Forward(f.batch, nil)
	f.model.Backward(nil)
	for _, q := range f.deltas {
		w.local.Step(w.grads, w.params, q, iter, int64(n))
	}
}

// pushLanded puts a piece of a push, that of transfer i, into its slot.
func (f *floats) pushLanded(i int32, t *transfer, slot int32) {
	p, st := &f.s.plan.Pieces[t.piece], &f.stores[t.shard]
	copy(st.slots[slot][p.Lo-st.sh.Lo:], f.pushed(i, t))
}

// replySent takes the version that a reply, or a piece of one, carries while its server still keeps it.
func (f *floats) replySent(t *transfer) {
	st := &f.stores[t.shard]
	for _, p := range f.s.carries(t) {
		f.replied(f.replicas[t.worker].mail[p.Lo:p.Hi], st.bufs[t.buf][p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], st.sh)
	}
}

// replyLanded gives it to the worker.
func (f *floats) replyLanded(t *transfer) {
	w := &f.replicas[t.worker]
	for _, p := range f.s.carries(t) {
		copy(w.params[p.Lo:p.Hi], w.mail[p.Lo:p.Hi])
	}
}

// obey does what an effect of a server node means for its numbers.
func (f *floats) obey(e *core.Effect) {
	st := &f.stores[e.Shard]
	switch e.Kind {
	case core.Stage:
		if int(e.Slot) == len(st.slots) {
			st.slots = append(st.slots, nil)
		}
		st.vector(st.slots, e.Slot)
		st.math.Flush() // a push that was folded may be in this slot, and not be read yet
	case core.Fold:
		if e.From != scheme.SlotPush {
			st.math.FoldSums(e.Into.Sums(), e.From.Sums(), e.Scale, e.Weight)
			return
		}
		st.math.Fold(e.Into.Sums(), st.slots[e.Slot], e.Scale, e.Weight)
		if e.Shard == 0 {
			f.view.folded(e.Msg)
		}
	case core.Commit:
		st.math.Commit(st.vector(st.bufs, e.Dst), st.bufs[e.Src], e.Clock, e.Scale, e.Weight)
		if e.Shard == 0 {
			f.view.rate = st.math.Rate(e.Clock)
		}
	case core.Snapshot:
		f.view.snapshot(e, st.bufs[e.Src])
	}
}

// vector finds the memory of a number, and makes it the first time.
func (st *store) vector(list [][]float32, i int32) []float32 {
	if list[i] == nil {
		list[i] = make([]float32, st.sh.Hi-st.sh.Lo)
	}
	return list[i]
}
