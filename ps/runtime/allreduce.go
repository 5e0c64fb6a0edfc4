package runtime

import (
	"fmt"
	"math"
	"time"

	"fluentps/comm"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// Behind the gradients, in the first bucket, travel what rank 0 wants to know of the other ranks, and its wish to stop.
const (
	tailLoss = iota
	tailCorrect
	tailBlocked
	tailStop
	tail // the number of them
)

var _ = [1]struct{}{}[tail-shard.BucketTail] // what simulate counts

// allReduce is `baseline: allreduce` on one rank: instead of pushing and pulling, the ranks add up their gradients with a
// collective, and each takes the same optimizer step on a copy of its own. All ranks are in the same iteration, and what
// ends the run is either known to all of them or told in the sums, so that all end after the same one.
type allReduce struct {
	r       *rank
	w       *workerSide
	sum     comm.Reducer
	stores  []*optim.Store // by shard of the plan, which has one server
	buckets []shard.Bucket // in the order in which backward completes them
	of      []int          // the bucket of each piece
	missing []int          // of each bucket: pieces that are not ready in this iteration
	next    int            // the first bucket whose sum was not begun
	open    int            // sums begun and not complete
	batch   int64          // samples of all ranks in one iteration
	version int64          // steps taken
	samples int64
	asked   bool // rank 0: stop for a reason that only it knows
	over    bool
	snaps   map[int64]*comm.Buf // rank 0: versions kept for evaluation
	full    bool                // one was left out for want of room
	warned  int64               // iteration whose wait was explained, -1: none
}

func newAllReduce(r *rank) (*allReduce, error) {
	sum, ok := r.t.(comm.Reducer)
	if !ok {
		return nil, fmt.Errorf("baseline allreduce: the transport %T has no collective sum", r.t)
	}
	update, err := r.cfg.Update()
	if err != nil {
		return nil, err
	}
	a := &allReduce{r: r, w: r.worker, sum: sum, buckets: r.plan.Buckets(), snaps: map[int64]*comm.Buf{}, warned: -1}
	a.of, a.missing = r.plan.BucketOf(a.buckets), make([]int, len(a.buckets))
	for id := range r.plan.Shards {
		st := r.build().Store(int32(id), update)
		st.Spread(r.cfg.Device.Threads, parallel)
		a.stores = append(a.stores, st)
	}
	for k, v := range r.plan.Views(a.w.params.F32()) {
		workload.Fill(v, r.cfg.Seed, r.param[k], 0)
	}
	for w := range r.roles.Workers {
		a.batch += int64(layout.BatchOf(r.cfg, len(r.roles.Workers), w))
	}
	a.w.node.WaitedLast, a.w.node.Cached = nil, nil // there are no shards to wait for
	return a, nil
}

// train runs iterations until the budget is used up.
func (a *allReduce) train() error {
	r, w := a.r, a.w
	for !a.over {
		a.begin()
		w.site.start(a.version)
		w.site.run()
		if err := r.net.Drive(func() bool { return a.next == len(a.buckets) && a.open == 0 }); err != nil {
			return err
		}
		a.commit()
	}
	w.done = true
	r.trainEnd, r.cpuEnd = r.t.Now(), processCPU()
	w.spans.Wall = r.trainEnd - r.trainStart
	return nil
}

func (a *allReduce) begin() {
	a.next = 0
	clear(a.missing)
	for _, k := range a.of {
		a.missing[k]++
	}
	a.w.node.Started++
}

// step takes the place of the worker's node: it is told the same, and answers nothing.
func (a *allReduce) step(in core.Input) {
	switch in.Kind {
	case core.Forwarded:
		t := a.w.grads.F32()[a.r.plan.Arena:]
		t[tailLoss], t[tailCorrect], t[tailBlocked], t[tailStop] = float32(in.Msg.Loss), float32(in.Msg.Correct), float32(in.Msg.Blocked), 0
		if a.asked {
			t[tailStop] = 1
		}
	case core.PieceReady:
		a.missing[a.of[in.Piece]]--
		a.start()
	case core.TaskDone:
	default:
		panic(fmt.Sprintf("runtime: input %v in an all-reduce", in))
	}
}

// start begins the sums of the buckets that are complete, in the same order on all ranks.
func (a *allReduce) start() {
	for a.next < len(a.buckets) && a.missing[a.next] == 0 {
		b := a.buckets[a.next]
		if a.next == 0 {
			b.Hi += tail
		}
		a.next++
		a.open++
		n := (b.Hi - b.Lo) * shard.ElemBytes
		a.r.net.Traffic.Sent += int64(n)
		a.sum.Iallreduce(a.w.grads, b.Lo*shard.ElemBytes, n, func(d comm.Done) {
			a.open--
			a.r.net.Traffic.Received += int64(d.N)
			if d.Err != nil {
				a.r.net.Fail(fmt.Errorf("runtime: all-reduce of iteration %d: %w", a.version, d.Err))
			}
		})
	}
}

// commit takes the step along the sums, and the same decisions on every rank.
func (a *allReduce) commit() {
	r, w := a.r, a.w
	now := r.t.Now()
	w.lastHead = now
	w.waited(now)
	params, sums := w.params.F32(), w.grads.F32()
	for id, st := range a.stores {
		sh := &r.plan.Shards[id]
		st.Fold(0, sums[sh.Lo:sh.Hi], 0, 1)
		st.Commit(params[sh.Lo:sh.Hi], params[sh.Lo:sh.Hi], float64(a.version), 1, 1/float64(a.batch)) // nobody else reads them
	}
	before := a.samples
	a.version++
	a.samples += a.batch
	w.spans.Add(metrics.Fold, r.t.Now()-now)
	told := sums[r.plan.Arena:]
	b := layout.BudgetOf(r.cfg, r.set.Train.Rows(), r.roles)
	a.over = told[tailStop] > 0 || b.Samples > 0 && a.samples >= b.Samples || b.Updates > 0 && a.version >= b.Updates
	if r.lead == nil {
		return
	}
	if every := r.cfg.Evaluate.Samples(r.set.Train.Rows()); every > 0 && a.samples/every > before/every {
		a.keep(a.samples/every - 1)
	}
	r.lead.reduced(a, told)
}

// reduced counts an iteration of all ranks.
func (l *lead) reduced(a *allReduce, told []float32) {
	loss := float64(told[tailLoss])
	l.accepted += int64(len(l.r.roles.Workers))
	w := &l.window
	w.loss += loss
	w.samples += a.batch
	w.correct += int64(told[tailCorrect])
	w.blocked += int64(told[tailBlocked])
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		l.halt(fmt.Sprintf("diverged: the train loss is %v in iteration %d; lower train.optimizer.lr (now %g) or add train.schedule.warm_up",
			loss, a.version-1, l.r.cfg.Train.Optimizer.LR))
	}
	l.epoch.Add(loss, a.batch)
	l.committed(&core.Effect{Iter: a.version, Samples: a.batch}, a.stores[0].Rate(float64(a.version-1)))
}

// keep keeps a copy of the parameters, on rank 0, until it was evaluated.
func (a *allReduce) keep(k int64) {
	r := a.r
	if int64(len(a.snaps)) >= r.snapsMax {
		if !a.full {
			r.log.Warn("no room for more snapshots: some evaluations are left out; raise evaluate.every_epochs (or every_samples) or cluster.memory_max", "kept", r.snapsMax)
		}
		a.full = true
		return
	}
	b, err := r.t.Alloc(a.w.params.Len())
	if err != nil {
		r.net.Fail(fmt.Errorf("snapshot %d: %w", k, err))
		return
	}
	copy(b.Bytes(), a.w.params.Bytes())
	a.snaps[k] = b
	r.lead.marks[k] = mark{at: r.now(), samples: a.samples, iteration: a.version}
	r.lead.whole(k)
}

// forget drops the snapshots up to k.
func (a *allReduce) forget(k int64) {
	for i, b := range a.snaps {
		if i <= k {
			b.Free()
			delete(a.snaps, i)
		}
	}
}

// sendSnapshot answers a rank that asks rank 0 for snapshot k; -1 is the current version.
func (a *allReduce) sendSnapshot(to int, k int64) {
	r := a.r
	b := a.snaps[k]
	if k < 0 {
		b = a.w.params
	}
	if b == nil {
		r.net.Fail(fmt.Errorf("runtime: rank %d asks for snapshot %d, which was not kept", to, k))
		return
	}
	for _, p := range r.plan.Pieces {
		off, n := at(p)
		r.net.Hold()
		r.t.Isend(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), b, off, n, func(d comm.Done) {
			r.net.Let()
			r.net.Fail(d.Err)
		})
	}
}

// hash identifies the parameters of this rank, in model order.
func (a *allReduce) hash() string {
	var flat []float32
	for _, v := range a.r.plan.Views(a.w.params.F32()) {
		flat = append(flat, v...)
	}
	return workload.HashOf(flat)
}

// stall explains a wait for the other ranks that is too long, and ends the job when it is far too long. Which rank does
// not come is known to none of those that wait.
func (a *allReduce) stall(limits configs.Stall) {
	if !a.w.waits {
		return
	}
	waited := a.r.t.Now() - max(a.w.waitFrom, a.r.awake)
	text := fmt.Sprintf("worker %d has waited %s for the other ranks in the all-reduce of iteration %d", a.w.me, waited.Round(time.Second), a.version)
	if limits.Warn > 0 && waited >= limits.Warn && a.warned != a.version {
		a.warned = a.version
		a.r.log.Warn("stall: " + text)
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		a.r.log.Error("stall: " + text + "; giving up after stall.abort " + limits.Abort.String())
		a.r.giveUp()
	}
}
