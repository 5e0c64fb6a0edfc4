package runtime

import (
	"fmt"
	"math"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/link"
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
	e.r.net.Fail(e.unit.Close())
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
				r.t.Irecv(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), e.arena, off, n, func(d comm.Done) {
					if !r.net.Whole(d, n, "snapshot %d", k) {
						return
					}
					if open--; open == 0 {
						then()
					}
				})
			}
		}
		if len(ids) > 0 {
			h := wire.SnapshotAsked(int32(r.me), k)
			r.net.Send(to, &h)
		}
	}
}

// chunks is how many batches the test set is cut into, from its first row on. Libraries give a row another last bit where
// it stands at another place of a product, or in one of another size; so it stands at the same place whoever looks at it.
func (e *evaluator) chunks() int { return (e.r.set.Test.Rows() + cap(e.rows) - 1) / cap(e.rows) }

// look gives the loss of each of these chunks, and the hits in all of them; between is called after each. A run that is
// interrupted does not look to the end: nobody uses what it saw then.
func (e *evaluator) look(first, last int, between func()) (losses []float64, correct int64) {
	t := e.r.set.Test
	most := cap(e.rows)
	for chunk := first; chunk < last && !e.r.halted.Load(); chunk++ {
		e.rows = e.rows[:0]
		for row := chunk * most; row < min((chunk+1)*most, t.Rows()); row++ {
			e.rows = append(e.rows, int32(row))
		}
		e.batch.Take(t, e.rows)
		l, c := e.model.Eval(e.batch)
		losses = append(losses, l)
		correct += int64(c)
		between()
	}
	return losses, correct
}

// whole looks at the test set alone.
func (e *evaluator) whole() (s sum) {
	losses, correct := e.look(0, e.chunks(), func() {})
	s.add(losses, correct)
	return s
}

// part is one rank's share of one evaluation. Losses of chunks travel as their bits: they may be infinite or not a number.
type part struct {
	LossBits []uint64
	Correct  int64
}

// sum is one evaluation. Losses are added chunk by chunk, in order, so that it has the same bits however many looked.
type sum struct {
	loss    float64
	correct int64
}

func (s *sum) add(losses []float64, correct int64) {
	for _, l := range losses {
		s.loss += l
	}
	s.correct += correct
}

// together evaluates snapshots with all ranks: each looks at its share of the chunks. Only rank 0 gets the
// sums; fewer than asked for if the run was interrupted meanwhile.
func (r *rank) together(e *evaluator, indices []int64) ([]sum, error) {
	first, last := e.chunks()*r.me/r.t.Size(), e.chunks()*(r.me+1)/r.t.Size()
	var sums []sum
	for _, k := range indices {
		here := false
		e.fetch(k, func() { here = true })
		if err := r.net.Drive(func() bool { return here }); err != nil {
			return nil, err
		}
		losses, correct := e.look(first, last, r.t.Tick)
		mine := part{Correct: correct}
		for _, l := range losses {
			mine.LossBits = append(mine.LossBits, math.Float64bits(l))
		}
		all, err := link.Gather(r.net, mine)
		if err != nil {
			return nil, err
		}
		on := r.lead == nil || r.lead.reason == ""
		if on && r.me == 0 {
			sums = append(sums, added(all))
		}
		if err := link.Spread(r.net, &on); err != nil {
			return nil, err
		}
		if !on { // what the ranks summed is not whole
			break
		}
	}
	return sums, nil
}

// added is the evaluation of which ranks have these parts, in rank order, which is that of the chunks.
func added(parts []part) (s sum) {
	for _, p := range parts {
		losses := make([]float64, len(p.LossBits))
		for i, bits := range p.LossBits {
			losses[i] = math.Float64frombits(bits)
		}
		s.add(losses, p.Correct)
	}
	return s
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
	case l.reason != "" && o.checkpoint != "" && !o.judging: // nobody needs to know any more
		o.judged()
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
	defer r.guarded()
	start := time.Now()
	s := o.e.whole()
	took := time.Since(start)
	r.t.Post(func() {
		o.took += took
		o.busy = false
		l := o.l
		if r.halted.Load() {
			return
		}
		k := l.complete[o.i]
		l.evaluated(l.marks[k], s.loss, s.correct, int64(r.set.Test.Rows()))
		if l.target != nil && !r.stopping() {
			r.stopNow()
		}
		o.i++
		for _, server := range r.keepers() {
			h := wire.SnapshotLooked(k)
			r.net.Send(server, &h)
		}
		o.next()
	})
}
