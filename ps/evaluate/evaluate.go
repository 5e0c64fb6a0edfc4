// Package evaluate looks at the test set with parameters of its own, on one rank beside training or on all ranks after it.
package evaluate

import (
	"fmt"
	"math"
	"sync/atomic"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/link"
	"fluentps/ps/shard"
	"fluentps/ps/station"
	"fluentps/ps/workload"
)

// Evaluator looks at the test set with parameters of its own, so that neither training nor a version in
// flight is touched.
type Evaluator struct {
	station *station.Station
	o       Options
	arena   *comm.Buf
	device  kernels.Device
	model   workload.Model
	batch   workload.Batch
	rows    []int32 // up to a batch of them
}

// Options are what one is made with.
type Options struct {
	Device func() (kernels.Device, error) // to compute on
	Halted *atomic.Bool                   // nobody wants to know any more
}

// New makes one, with an arena and a device of its own.
func New(r *station.Station, o Options) (*Evaluator, error) {
	most := workload.EvalRows(r.Config.ModelSpec(), r.Set.Samples())
	e := &Evaluator{station: r, o: o, batch: workload.NewBatch(r.Config.Model.Name, r.Set.Samples(), most), rows: make([]int32, 0, most)}
	var err error
	if e.arena, err = r.Transport.Alloc(r.Plan.Arena * shard.ElemBytes); err != nil {
		return nil, fmt.Errorf("evaluation arena: %w", err)
	}
	if e.device, err = o.Device(); err != nil {
		return nil, err
	}
	if e.model, err = workload.NewModel(r.Config.ModelSpec(), r.Set.Samples(), e.device, most); err != nil {
		return nil, err
	}
	if err := station.Announce(e.device, e.arena); err != nil {
		return nil, err
	}
	e.model.Bind(r.Plan.Views(e.arena.F32()), nil)
	return e, nil
}

// Close gives them back.
func (e *Evaluator) Close() {
	e.station.Net.Fail(e.device.Close())
	e.arena.Free()
}

// Params is the arena that it looks with.
func (e *Evaluator) Params() []float32 { return e.arena.F32() }

// Fetched is fetch, and waits for it.
func (e *Evaluator) Fetched(k int64) error {
	here := false
	e.Fetch(k, func() { here = true })
	return e.station.Net.Drive(func() bool { return here })
}

// Fetch asks every server for its slices of snapshot k (-1: the current version) and calls then when they
// are all in the arena.
func (e *Evaluator) Fetch(k int64, then func()) {
	r := e.station
	open := len(r.Plan.Pieces)
	for m, to := range r.Keepers() {
		ids := r.Plan.OfServer(int32(m))
		for _, id := range ids {
			for _, p := range r.Plan.Shards[id].Pieces {
				off, n := p.InArena()
				r.Transport.Irecv(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), e.arena, off, n, func(d comm.Done) {
					if !r.Net.Whole(d, n, "snapshot %d", k) {
						return
					}
					if open--; open == 0 {
						then()
					}
				})
			}
		}
		if len(ids) > 0 {
			h := wire.SnapshotAsked(int32(r.Me), k)
			r.Net.Send(to, &h)
		}
	}
}

// chunks is how many batches the test set is cut into, from its first row on. Libraries give a row another last bit where
// it stands at another place of a product, or in one of another size; so it stands at the same place whoever looks at it.
func (e *Evaluator) chunks() int { return (e.station.Set.Test.Rows() + cap(e.rows) - 1) / cap(e.rows) }

// look gives the loss of each of these chunks, and the hits in all of them; between is called after each. A run that is
// interrupted does not look to the end: nobody uses what it saw then.
func (e *Evaluator) look(first, last int, between func()) (losses []float64, correct int64) {
	t := e.station.Set.Test
	most := cap(e.rows)
	for chunk := first; chunk < last && !e.o.Halted.Load(); chunk++ {
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

// Whole looks at the test set alone.
func (e *Evaluator) Whole() (s Sum) {
	losses, correct := e.look(0, e.chunks(), func() {})
	s.add(losses, correct)
	return s
}

// part is one rank's share of one evaluation. Losses of chunks travel as their bits: they may be infinite or not a number.
type part struct {
	LossBits []uint64
	Correct  int64
}

// Sum is one evaluation. Losses are added chunk by chunk, in order, so that it has the same bits however many looked.
type Sum struct {
	Loss    float64
	Correct int64
}

func (s *Sum) add(losses []float64, correct int64) {
	for _, l := range losses {
		s.Loss += l
	}
	s.Correct += correct
}

// Together evaluates snapshots with all ranks: each looks at its share of the chunks. Only rank 0 gets the
// sums; fewer than asked for if the run was interrupted meanwhile, as on says there.
func (e *Evaluator) Together(indices []int64, on func() bool) ([]Sum, error) {
	r := e.station
	first, last := e.chunks()*r.Me/r.Transport.Size(), e.chunks()*(r.Me+1)/r.Transport.Size()
	var sums []Sum
	for _, k := range indices {
		if err := e.Fetched(k); err != nil {
			return nil, err
		}
		losses, correct := e.look(first, last, r.Transport.Tick)
		mine := part{Correct: correct}
		for _, l := range losses {
			mine.LossBits = append(mine.LossBits, math.Float64bits(l))
		}
		all, err := link.Gather(r.Net, mine)
		if err != nil {
			return nil, err
		}
		goesOn := true
		if r.Me == 0 {
			if goesOn = on(); goesOn {
				sums = append(sums, added(all))
			}
		}
		if err := link.Spread(r.Net, &goesOn); err != nil {
			return nil, err
		}
		if !goesOn { // what the ranks summed is not whole
			break
		}
	}
	return sums, nil
}

// added is the evaluation of which ranks have these parts, in rank order, which is that of the chunks.
func added(parts []part) (s Sum) {
	for _, p := range parts {
		losses := make([]float64, len(p.LossBits))
		for i, bits := range p.LossBits {
			losses[i] = math.Float64frombits(bits)
		}
		s.add(losses, p.Correct)
	}
	return s
}
