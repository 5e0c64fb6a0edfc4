// Package real computes real gradients in a simulated run. Messages then carry values, and the result has the accuracy against virtual
// time. The engine (internal/sim) knows it as Values: it says when a worker computes, when a piece leaves and lands, and what a server
// decides.
package real

import (
	"errors"
	"fmt"

	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/core/tasks"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/kernels"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// Gradients makes a run compute real gradients: every worker trains a replica of the model, on the rows and with the seeds that it
// would have under the runtime. Pushes, versions and replies carry values. Times stay those of the models.
type Gradients struct {
	Set    *dataset.Set
	Device kernels.Device // computes all replicas, one after the other; the caller closes it
	// Initial gives parameters their first values; nil: they follow from the seed.
	Initial workload.Initial
}

// floats are the values of a run with real gradients. They follow from the decisions and do not change them, except for
// train.stop.target and a loss that is not a number, which end the run, and the norms of pushes for schemes that use them.
type floats struct {
	s            *sim.Simulation
	g            *Gradients
	set          *dataset.Set
	architecture *workload.Architecture
	model        workload.Model // bound to the replica that computes
	batch        workload.Batch
	rows         []int32
	grain        []float32 // arena: the gradients of one grain of a task; nil if there are no tasks

	replicas []replica
	layers   [][]int32           // by layer: its pieces
	deltas   []optim.Run         // parts of the arena that are pushed as deltas
	stores   []store             // per shard
	onWay    map[int32][]float32 // by transfer: values of a piece of a push that has left while its worker computes on
	view     *evaluator
	coded    coded
	most     int64 // bytes of memory that the values may take
}

// replica is the model of one worker.
type replica struct {
	params, grads []float32        // arenas
	residual      []float32        // arena: values that its pushes have left out; nil if the codec keeps none
	memory        []payload.Memory // by piece: what the codec of pushes remembers
	// mail is an arena with at most one version per shard: one that has left its server and not landed, or that is published and
	// not adopted.
	mail    []float32
	kept    map[[2]int32][]float32 // by shard and slot: pushes of its own
	views   [2][][]float32
	sampler *dataset.Sampler
	augment *images.Augmenter
	clip    *steps.Clip   // of what it pushes; nil: nothing is clipped
	own     *steps.Worker // nil: every step is an exchange
	local   *optim.Delta  // nil unless there are deltas
	ranges  *ranges       // nil unless a policy says which samples the worker computes
	loss    float64       // of its last iteration
	correct int
	flying  int         // pieces of its pushes that have not landed and have values in grads alone; until then grads may not change
	unsent  []outward   // such pieces that have not left, of shards whose copy the worker keeps
	waiting [][]float32 // arenas: gradients of this iteration that are pushed later
}

// outward is a piece of a push on its way, by its transfer.
type outward struct{ transfer, piece int32 }

// store is the memory of one shard on its server. Vectors are indexed as the node numbers them, and nil until used.
type store struct {
	sh    *shard.Shard
	bufs  [][]float32 // versions
	slots [][]float32 // staged pushes
	math  *optim.Store

	pushers []origin.Pusher // of the pushes folded since the last commit
	found   *origin.Finding // the first value that was not finite; nil: all were
}

// Values makes the values of a run: set sim.Options.Values to it.
func (g *Gradients) Values(s *sim.Simulation) (sim.Values, error) {
	if s.Config().Train.Stop.Target > 0 && g.Set.Test.Rows() == 0 {
		return nil, errors.New("train.stop.target needs test data, but the data set has none; name data.test")
	}
	return newFloats(s, g)
}

func newFloats(s *sim.Simulation, g *Gradients) (*floats, error) {
	c, n := s.Config(), s.Workers()
	f := &floats{s: s, g: g, set: g.Set, replicas: make([]replica, n), stores: make([]store, len(s.Plan().Shards))}
	batch := 0
	for i := range n {
		batch = max(batch, layout.BatchRoom(c, n, i))
	}
	f.batch = workload.NewBatch(c.Model.Name, f.set.Samples(), batch)
	var err error
	if f.model, err = workload.NewModel(c.ModelSpec(), f.set.Samples(), g.Device, batch); err != nil {
		return nil, err
	}
	if f.architecture, err = layout.Architecture(c, f.set); err != nil {
		return nil, err
	}
	f.layers = sim.LayersOf(s.Plan())
	update, err := c.Update()
	if err != nil {
		return nil, err
	}
	outer, err := c.ServerUpdate(n)
	if err != nil {
		return nil, err
	}
	for i := range s.Plan().Pieces {
		f.deltas = append(f.deltas, c.DeltaRuns(s.Plan(), &s.Plan().Pieces[i])...)
	}
	f.coded = newCoded(c, s.Plan())
	snapshots, err := f.limit(update, outer)
	if err != nil {
		return nil, err
	}
	for i := range f.stores {
		if err := f.makeStore(&s.Plan().Shards[i], outer); err != nil {
			return nil, err
		}
	}
	for i := range f.replicas {
		if err := f.makeReplica(i, update); err != nil {
			return nil, err
		}
	}
	f.view, err = newEvaluator(f, c.ModelSpec(), snapshots)
	return f, err
}

// limit returns the number of snapshots that there is memory for. It fails if the run may need more than cluster.memory_max: the
// arenas of all workers and the stores of all servers are in one process.
func (f *floats) limit(update, outer optim.Update) (snapshots int64, err error) {
	c, p, n := f.s.Config(), f.s.Plan(), int64(len(f.replicas))
	arena := int64(p.Arena) * shard.ElemBytes
	each := int64(3)
	if len(f.deltas) > 0 {
		each += int64(update.Rule.State())
	}
	own, _ := layout.StepVectors(c)
	each += own
	if c.Payload.Residual() {
		each++
	}
	if f.s.HasTasks() {
		each += 2 + int64(tasks.Kept(f.s.Config().Work)) // the parameters of the iteration, and pieces of a push that have left and not landed
		f.grain = make([]float32, p.Arena)
	}
	// one arena is that of the snapshot under evaluation
	f.most = int64(len(f.coded.wire)) + int64(len(f.grain))*shard.ElemBytes + arena + n*(each*arena+f.copyBytes())
	for i := range p.Shards {
		rule := &c.Sync[p.Shards[i].Rule]
		slots, means, err := inturn.Most(rule.InTurn(), int(n))
		if err != nil {
			return 0, err
		}
		vectors := n + 2 + int64(slots) + 1 + int64(means)
		if f.s.Axes().Parts > 1 {
			vectors += n // parts in flight
		}
		if a := f.s.Axes().Ahead; a != nil {
			if vectors += n + int64(core.AheadSlots(a.Owners)); a.Apart {
				vectors += 2 * n // the other push of an iteration
			}
		}
		if c.Optimized(&p.Shards[i]) {
			vectors += int64(outer.Rule.State())
		}
		f.most += vectors * p.Shards[i].Bytes()
	}
	if f.most > c.Cluster.MemoryMax || f.most < 0 {
		return 0, fmt.Errorf("real gradients of %d workers may need %s in this process, but cluster.memory_max is %s: "+
			"the model has %s, a worker keeps %d arenas of that size and the servers up to %s in versions and staged "+
			"pushes; simulate fewer workers, raise cluster.memory_max, or leave out simulate.gradients",
			n, metrics.Size(f.most), metrics.Size(c.Cluster.MemoryMax), metrics.Size(arena), each, metrics.Size(f.most-arena-n*each*arena))
	}
	return min(snapshotsMax, 1+(c.Cluster.MemoryMax-f.most)/arena), nil
}

func (f *floats) makeStore(sh *shard.Shard, update optim.Update) error {
	st, b := &f.stores[sh.ID], f.s.Build()
	*st = store{sh: sh, bufs: make([][]float32, servernode.Buffers(len(f.replicas), false)), math: b.Store(sh.ID, update)}
	b.Initial = f.g.Initial
	return b.Fill(st.vector(st.bufs, 0), sh, f.architecture)
}

func (f *floats) makeReplica(i int, update optim.Update) error {
	c, w := f.s.Config(), &f.replicas[i]
	rows, err := layout.InitialRows(c, len(f.replicas), i, f.set)
	if err != nil {
		return err
	}
	n := f.s.Plan().Arena
	w.params, w.grads, w.mail = make([]float32, n), make([]float32, n), make([]float32, n)
	if c.Payload.Residual() {
		w.residual = make([]float32, n)
	}
	w.memory = make([]payload.Memory, len(f.s.Plan().Pieces))
	w.clip = steps.NewClip(c.Train.Clip, f.s.Plan())
	w.views = [2][][]float32{f.s.Plan().Views(w.params), f.s.Plan().Views(w.grads)}
	w.sampler = dataset.NewSampler(rows, int(f.s.Batch(int32(i))), c.Seed, i).Within(c.Data.Deal.WindowRows())
	if p := f.s.Dealt(int32(i)); p.Batches != nil {
		w.sampler.Assign(layout.RowsOf(c, p, i, f.set.Train.Rows()))
	}
	w.augment = images.NewAugmenter(c.Data.Augment, f.set.Image, c.Seed, i)
	if len(f.deltas) > 0 {
		w.local = optim.NewDelta(n, update)
	}
	if f.s.HasTasks() {
		w.ranges = f.newRanges()
	}
	return nil
}

// Compute runs one iteration at the virtual time at which the last of its parameters has arrived. Its gradients are in the arena at
// once. They are sent when the model of computing says that they are ready.
func (f *floats) Compute(me int32, iter int64) {
	w, n := &f.replicas[me], int(f.s.Batch(me))
	f.keepUnsent(w)
	if w.flying > 0 {
		f.s.Fail("immutable gradients: worker %d computes iteration %d while %d pieces of its last push have not landed", me, iter, w.flying)
	}
	f.rows = w.sampler.Batch(iter, f.rows)
	f.gather()
	w.augment.Apply(f.batch.X, iter)
	f.model.Bind(w.views[0], w.views[1])
	w.loss, w.correct = f.step(me, iter, f.batch)
	w.clip.Sums(w.grads, int64(n))
	for _, q := range f.deltas {
		w.local.Step(w.grads, w.params, q, iter, int64(n))
	}
}

// gather makes the batch of the rows. A file that cannot be read any more ends the run.
func (f *floats) gather() {
	if err := f.batch.Take(f.set.Train, f.rows); err != nil {
		f.s.Fail("%v", err)
	}
}

// step runs a model on a batch, forward and backward. A model that fails ends the run.
func (f *floats) step(me int32, iter int64, b workload.Batch) (loss float64, correct int) {
	pass := "forward"
	loss, correct, err := f.model.Forward(b, nil)
	if err == nil {
		pass, err = "backward", f.model.Backward(nil)
	}
	if err != nil {
		f.s.Fail("worker %d: iteration %d: %s: %v", me, iter, pass, err)
	}
	return loss, correct
}

// Loss is that of the worker's last iteration.
func (f *floats) Loss(me int32) (loss float64, correct int64) {
	return f.replicas[me].loss, int64(f.replicas[me].correct)
}

// Rejoined begins anew for a worker that was lost.
func (f *floats) Rejoined(me int32) {
	w := &f.replicas[me]
	w.flying, w.unsent = 0, nil
	clear(w.residual) // lost with the earlier life
	clear(w.memory)
}

// Assigned gives a worker its next rows.
func (f *floats) Assigned(me int32) {
	f.replicas[me].sampler.Assign(layout.RowsOf(f.s.Config(), f.s.Dealt(me), int(me), f.s.Rows()))
}

// Norms are those of the push in a slot, and of the parameters.
func (f *floats) Norms(shard, slot int32, samples int64) (norm2, normInf, normW float32) {
	st := &f.stores[shard]
	return st.math.Norms(st.slots[slot], st.bufs[f.s.Shard(shard).Cur], 1/float64(max(samples, 1)))
}

// Squares are those of the mean that the next commit of a shard will be of.
func (f *floats) Squares(shard int32, weight float64) float64 {
	return f.stores[shard].math.Squares(weight)
}

// PushLanded copies the piece of a push that transfer i has delivered to its slot.
func (f *floats) PushLanded(i int32, t sim.Transfer, slot int32) {
	p, st := &f.s.Plan().Pieces[t.Piece], &f.stores[t.Shard]
	copy(st.slots[slot][p.Lo-st.sh.Lo:], f.pushed(i, t))
}

// ReplySent copies the values of a reply, or of a piece of one, while its server still keeps the version.
func (f *floats) ReplySent(t sim.Transfer) {
	st := &f.stores[t.Shard]
	for _, p := range f.s.Carries(t) {
		f.replied(t, f.replicas[t.Worker].mail[p.Lo:p.Hi], st.bufs[t.Buf][p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], &p)
	}
}

// ReplyLanded copies the values of a reply that has landed to the parameters of the worker.
func (f *floats) ReplyLanded(t sim.Transfer) {
	w := &f.replicas[t.Worker]
	for _, p := range f.s.Carries(t) {
		copy(w.params[p.Lo:p.Hi], w.mail[p.Lo:p.Hi])
	}
}

// ServerDid applies an effect of a server node to the values of its shards.
func (f *floats) ServerDid(e *core.Effect) {
	st := &f.stores[e.Shard]
	switch e.Kind {
	case core.Stage:
		if int(e.Slot) == len(st.slots) {
			st.slots = append(st.slots, nil)
		}
		st.vector(st.slots, e.Slot)
		st.math.Flush() // the fold of an earlier push in this slot may not have read it yet
	case core.Fold:
		if e.From != scheme.SlotPush {
			st.math.FoldSums(e.Into.Sums(), e.From.Sums(), e.Scale, e.Weight)
			return
		}
		st.math.Fold(e.Into.Sums(), st.slots[e.Slot], e.Scale, e.Weight)
		st.pushers = append(st.pushers, origin.Pusher{Worker: e.Msg.Worker, Iter: e.Msg.Iter})
		if e.Shard == 0 {
			f.view.folded(e.Msg)
		}
	case core.Merge:
		optim.AddDelta(st.slots[e.Dst], st.slots[e.Slot], 1)
	case core.Commit:
		st.math.After(float64(e.Before) / float64(f.s.Config().Batch(f.s.Workers())))
		st.math.Commit(st.vector(st.bufs, e.Dst), st.bufs[e.Src], e.Clock, e.Scale, e.Weight)
		f.lookAtFault(st, e.Iter)
		if e.Shard == 0 {
			f.view.rate = st.math.Shown(e.Clock)
		}
	case core.Snapshot:
		f.view.snapshot(e, st.bufs[e.Src])
	}
}

// vector returns vector i of a list. The first time it allocates it.
func (st *store) vector(list [][]float32, i int32) []float32 {
	if list[i] == nil {
		list[i] = make([]float32, st.sh.Hi-st.sh.Lo)
	}
	return list[i]
}

// Text describes the values.
func (f *floats) Text() string {
	return fmt.Sprintf("real     gradients, of the parameters at the start of each iteration; evaluation takes no "+
		"time; memory at most %s and %d snapshots of %s",
		metrics.Size(f.most), f.view.room, metrics.Size(int64(f.s.Plan().Arena)*shard.ElemBytes))
}

// Finish writes the parameters and the evaluations to the result.
func (f *floats) Finish(r *sim.Result) {
	r.Parameters = f.view.finish(r.Summary)
	r.Records, r.LeftOut = f.view.records, f.view.leftOut
	r.Summary.AddClipped(f.s.MeansClipped())
	for i := range f.replicas {
		if w := &f.replicas[i]; w.own != nil {
			r.Summary.AddClipped(w.own.Clipped())
		} else {
			r.Summary.AddClipped(w.clip.Counts())
		}
	}
}
