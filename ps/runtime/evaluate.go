package runtime

import (
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/core"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// evalRows is the batch of evaluation: large enough for the kernels, small enough that a server which
// evaluates still answers.
const evalRows = 256

// evaluator looks at the test set with parameters of its own, so that neither training nor a version in
// flight is touched.
type evaluator struct {
	r      *rank
	arena  *comm.Buf
	device kernels.Device
	model  workload.Model
	x      []float32
	y      []int32
	rows   []int32
}

func newEvaluator(r *rank) (*evaluator, error) {
	e := &evaluator{r: r, x: make([]float32, evalRows*r.set.Test.Cols()), y: make([]int32, evalRows), rows: make([]int32, 0, evalRows)}
	var err error
	if e.arena, err = r.t.Alloc(r.plan.Arena * shard.ElemBytes); err != nil {
		return nil, fmt.Errorf("evaluation arena: %w", err)
	}
	if e.device, err = r.o.NewDevice(); err != nil {
		return nil, err
	}
	c := r.cfg.Model
	if e.model, err = workload.NewModel(workload.ModelSpec{Name: c.Name, Layers: c.Layers}, r.set.Train.Cols(), r.set.Classes, e.device, evalRows); err != nil {
		return nil, err
	}
	e.model.Bind(views(r.plan, e.arena), nil)
	return e, nil
}

func (e *evaluator) close() {
	e.arena.Free()
	e.r.fail(e.device.Close())
}

// fetch asks every server for its slices of snapshot k (-1: the current version) and calls then when they
// are all in the arena.
func (e *evaluator) fetch(k int64, then func()) {
	r := e.r
	open := len(r.plan.Pieces)
	for m, to := range r.roles.Servers {
		ids := r.plan.OfServer(int32(m))
		for _, id := range ids {
			for _, p := range r.plan.Shards[id].Pieces {
				off, n := at(p)
				r.t.Irecv(comm.Peer(to), comm.Data, tagSnapshot|uint32(p.ID), e.arena, off, n, func(d comm.Done) {
					if d.Err != nil || d.N != n {
						r.fail(fmt.Errorf("runtime: snapshot %d: %d of %d bytes: %w", k, d.N, n, d.Err))
						return
					}
					if open--; open == 0 {
						then()
					}
				})
			}
		}
		if len(ids) > 0 {
			r.send(to, wire.Header{Kind: wire.Snapshot, Iter: k, Worker: int32(r.me)})
		}
	}
}

// look sums loss and hits over test rows [lo, hi); between is called after each batch.
func (e *evaluator) look(lo, hi int, between func()) (loss float64, correct int64) {
	t := e.r.set.Test
	for ; lo < hi; lo += evalRows {
		n := min(evalRows, hi-lo)
		e.rows = e.rows[:0]
		for i := range n {
			e.rows = append(e.rows, int32(lo+i))
		}
		x := e.x[:n*t.Cols()]
		t.Fill(x, e.y[:n], e.rows)
		l, c := e.model.Eval(workload.Batch{X: x, Y: e.y[:n], N: n, Cols: t.Cols()})
		loss += l
		correct += int64(c)
		between()
	}
	return loss, correct
}

// part is one rank's share of one evaluation.
type part struct {
	Loss    float64
	Correct int64
}

// together evaluates snapshots with all ranks: each looks at its share of the test rows. Only rank 0 gets the
// sums, added in rank order.
func (r *rank) together(e *evaluator, indices []int64) ([]part, error) {
	rows := r.set.Test.Rows()
	lo, hi := rows*r.me/r.t.Size(), rows*(r.me+1)/r.t.Size()
	mine := make([]part, len(indices))
	for i, k := range indices {
		here := false
		e.fetch(k, func() { here = true })
		if err := r.drive(func() bool { return here }); err != nil {
			return nil, err
		}
		mine[i].Loss, mine[i].Correct = e.look(lo, hi, r.t.Tick)
		if r.err != nil {
			return nil, r.err
		}
	}
	all, err := gather(r, mine)
	if err != nil || r.me != 0 {
		return nil, err
	}
	sums := make([]part, len(indices))
	for _, parts := range all {
		for i, p := range parts {
			sums[i].Loss += p.Loss
			sums[i].Correct += p.Correct
		}
	}
	return sums, nil
}

// online evaluates snapshots on rank 0 while training goes on: one at a time, in order.
type online struct {
	l    *lead
	e    *evaluator
	busy bool
	k    int64         // the next snapshot to look at
	took time.Duration // spent evaluating
}

// next starts on the next snapshot when it is complete and nothing is being looked at.
func (o *online) next() {
	l := o.l
	if o.busy || l.readyN[o.k] < l.owners {
		return
	}
	o.busy = true
	o.e.fetch(o.k, func() { go o.look() })
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
		l := o.l
		l.evaluated(l.marks[o.k], loss, correct, int64(rows))
		if l.target != nil && !r.server.node.Stopping() {
			r.server.step(core.Input{Kind: core.StopNow})
		}
		o.k++
		o.busy = false
		o.next()
	})
}
