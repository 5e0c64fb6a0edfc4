package runtime

import (
	"fmt"
	"math"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// evaluator looks at the test set with parameters of its own, so that neither training nor a version in
// flight is touched.
type evaluator struct {
	r     *rank
	arena *comm.Buf
	unit  Unit
	model workload.Model
	batch workload.Batch
	rows  []int32 // up to a batch of them
}

func newEvaluator(r *rank) (*evaluator, error) {
	most := workload.EvalRows(r.cfg.ModelSpec(), r.set.Samples())
	e := &evaluator{r: r, batch: workload.NewBatch(r.cfg.Model.Name, r.set.Samples(), most), rows: make([]int32, 0, most)}
	var err error
	if e.arena, err = r.t.Alloc(r.plan.Arena * shard.ElemBytes); err != nil {
		return nil, fmt.Errorf("evaluation arena: %w", err)
	}
	if e.unit, err = r.newUnit(); err != nil {
		return nil, err
	}
	if e.model, err = workload.NewModel(r.cfg.ModelSpec(), r.set.Samples(), e.unit.Device, most); err != nil {
		return nil, err
	}
	if err := announce(e.unit.Device, e.arena); err != nil {
		return nil, err
	}
	e.model.Bind(r.plan.Views(e.arena.F32()), nil)
	return e, nil
}

func (e *evaluator) close() {
	e.r.fail(e.unit.Close())
	e.arena.Free()
}

// fetch asks every server for its slices of snapshot k (-1: the current version) and calls then when they
// are all in the arena.
func (e *evaluator) fetch(k int64, then func()) {
	r := e.r
	open := len(r.plan.Pieces)
	for m, to := range r.keepers() {
		ids := r.plan.OfServer(int32(m))
		for _, id := range ids {
			for _, p := range r.plan.Shards[id].Pieces {
				off, n := at(p)
				r.t.Irecv(comm.Peer(to), comm.Data, tagSnapshot|uint32(p.ID), e.arena, off, n, func(d comm.Done) {
					if !r.whole(d, n, "snapshot %d", k) {
						return
					}
					if open--; open == 0 {
						then()
					}
				})
			}
		}
		if len(ids) > 0 {
			r.send(to, &wire.Header{Kind: wire.Snapshot, Iter: k, Worker: int32(r.me)})
		}
	}
}

// look sums loss and hits over test rows [lo, hi); between is called after each batch. A run that is interrupted
// does not look to the end: nobody uses the sums then.
func (e *evaluator) look(lo, hi int, between func()) (loss float64, correct int64) {
	t := e.r.set.Test
	most := cap(e.rows)
	for ; lo < hi && !e.r.halted.Load(); lo += most {
		n := min(most, hi-lo)
		e.rows = e.rows[:0]
		for i := range n {
			e.rows = append(e.rows, int32(lo+i))
		}
		e.batch.Take(t, e.rows)
		l, c := e.model.Eval(e.batch)
		loss += l
		correct += int64(c)
		between()
	}
	return loss, correct
}

// part is one rank's share of one evaluation. The loss travels as its bits: it may be infinite or not a number.
type part struct {
	LossBits uint64
	Correct  int64
}

// sum is one evaluation.
type sum struct {
	loss    float64
	correct int64
}

// together evaluates snapshots with all ranks: each looks at its share of the test rows. Only rank 0 gets the
// sums, added in rank order; fewer than asked for if the run was interrupted meanwhile.
func (r *rank) together(e *evaluator, indices []int64) ([]sum, error) {
	rows := r.set.Test.Rows()
	lo, hi := rows*r.me/r.t.Size(), rows*(r.me+1)/r.t.Size()
	var sums []sum
	for _, k := range indices {
		here := false
		e.fetch(k, func() { here = true })
		if err := r.drive(func() bool { return here }); err != nil {
			return nil, err
		}
		loss, correct := e.look(lo, hi, r.t.Tick)
		all, err := gather(r, part{LossBits: math.Float64bits(loss), Correct: correct})
		if err != nil {
			return nil, err
		}
		on := r.lead == nil || r.lead.reason == ""
		if on && r.me == 0 {
			var s sum
			for _, p := range all {
				s.loss += math.Float64frombits(p.LossBits)
				s.correct += p.Correct
			}
			sums = append(sums, s)
		}
		if err := spread(r, &on); err != nil {
			return nil, err
		}
		if !on { // what the ranks summed is not whole
			break
		}
	}
	return sums, nil
}

// online evaluates snapshots on rank 0 while training goes on: one at a time, in order.
type online struct {
	l      *lead
	e      *evaluator
	busy   bool
	closed bool          // training is over: what is left is for all ranks
	i      int           // the next of lead.complete to look at
	took   time.Duration // spent evaluating

	checkpoint string // that is to be looked at when busy ends, or is; "": none
	judging    bool   // it is
	best       best
}

// next starts on the next snapshot that is complete, if nothing is being looked at.
func (o *online) next() {
	l := o.l
	switch {
	case o.busy || o.closed || l.reason != "":
	case o.checkpoint != "":
		o.busy, o.judging = true, true
		go o.judge()
	case o.i < len(l.complete):
		o.busy = true
		o.e.fetch(l.complete[o.i], func() { go o.look() })
	}
}

func (o *online) look() {
	r := o.l.r
	defer r.guard(nil, nil)
	start := time.Now()
	rows := r.set.Test.Rows()
	loss, correct := o.e.look(0, rows, func() {})
	took := time.Since(start)
	r.t.Post(func() {
		o.took += took
		o.busy = false
		l := o.l
		if r.halted.Load() {
			return
		}
		k := l.complete[o.i]
		l.evaluated(l.marks[k], loss, correct, int64(rows))
		if l.target != nil && !r.stopping() {
			r.stopNow()
		}
		o.i++
		for _, server := range r.keepers() {
			r.send(server, &wire.Header{Kind: wire.Looked, Iter: k})
		}
		o.next()
	})
}
