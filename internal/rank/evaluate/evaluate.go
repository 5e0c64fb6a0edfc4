// Package evaluate computes the loss and accuracy on the test set with parameters of its own, on one rank beside training
// or on all ranks after it.
package evaluate

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/ps/workload"
)

// Evaluator computes the loss and accuracy on the test set. It has its own parameters, so that it touches neither training
// nor a version in flight.
type Evaluator struct {
	station *station.Station
	o       Options
	arena   *comm.Buf
	isOurs  bool // the arena is to be freed
	device  kernels.Device
	model   workload.Model // nil: this rank cannot compute it
	batch   workload.Batch
	rows    []int32 // of one batch, at most
}

// Options are the inputs of New.
type Options struct {
	Device func() (kernels.Device, error) // opens the device to compute on
	Halted *atomic.Bool                   // the results are not needed any more
}

// New makes an evaluator with an arena and a device of its own.
func New(r *station.Station, o Options) (*Evaluator, error) {
	batchMax := r.Model.Architecture.EvalRows()
	e := &Evaluator{station: r, o: o, batch: workload.NewBatch(r.Config.Model.Name, r.Set.Samples(), batchMax),
		rows: make([]int32, 0, batchMax)}
	var err error
	if e.device, err = o.Device(); err != nil {
		return nil, err
	}
	computes := slices.Contains(r.Evaluators(), r.Me)
	if computes {
		if e.model, err = r.NewModel(e.device, batchMax, true); err != nil {
			return nil, err
		}
	}
	if e.arena, e.isOurs, err = r.Room(e.model, r.Plan.Arena*shard.ElemBytes); err != nil {
		return nil, fmt.Errorf("evaluation arena: %w", err)
	}
	if !computes {
		return e, nil
	}
	if err := station.Announce(e.device, e.arena); err != nil {
		return nil, err
	}
	e.model.Bind(r.Plan.Views(e.arena.F32()), nil)
	return e, nil
}

// Close frees the device and the arena.
func (e *Evaluator) Close() {
	e.station.Net.Fail(e.device.Close())
	if e.isOurs {
		e.arena.Free()
	}
}

// Params is the arena of the parameters.
func (e *Evaluator) Params() []float32 { return e.arena.F32() }

// FetchAndWait does Fetch and waits until all has arrived.
func (e *Evaluator) FetchAndWait(k int64) error {
	arrived := false
	e.Fetch(k, func() { arrived = true })
	return e.station.Net.Drive(func() bool { return arrived })
}

// Fetch asks every server for its part of snapshot k (-1: the current version), and calls then when all parts are in the
// arena.
func (e *Evaluator) Fetch(k int64, then func()) {
	r := e.station
	missing := len(r.Plan.Pieces)
	for m, to := range r.Keepers() {
		ids := r.Plan.OfServer(int32(m))
		for _, id := range ids {
			for _, p := range r.Plan.Shards[id].Pieces {
				off, n := p.InArena()
				r.Transport.Irecv(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), e.arena, off, n, func(d comm.Done) {
					if !r.Net.Whole(d, n, "snapshot %d", k) {
						return
					}
					if missing--; missing == 0 {
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

// chunks is the number of batches of the test set. The cut is the same for every rank: libraries give a row another last
// bit at another place of a product, or in a product of another size.
func (e *Evaluator) chunks() int { return (e.station.Set.Test.Rows() + cap(e.rows) - 1) / cap(e.rows) }

// chunk is what the rows of a batch come to.
type chunk struct {
	loss float64
	workload.Errors
}

// evalChunks returns the sums of each chunk from first to last, and the number of hits in all of them; it calls between
// after each. It stops early in a run that was halted, which uses no result.
func (e *Evaluator) evalChunks(first, last int, between func()) (chunks []chunk, correct int64, err error) {
	t := e.station.Set.Test
	batchMax := cap(e.rows)
	for at := first; at < last && !e.o.Halted.Load(); at++ {
		e.rows = e.rows[:0]
		for row := at * batchMax; row < min((at+1)*batchMax, t.Rows()); row++ {
			e.rows = append(e.rows, int32(row))
		}
		var l float64
		var c int
		if err = e.batch.Take(t, e.rows); err == nil {
			l, c, err = e.model.Eval(e.batch)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("rank %d: evaluation of test rows %d to %d: %w", e.station.Me, e.rows[0], e.rows[len(e.rows)-1], err)
		}
		chunks = append(chunks, chunk{l, workload.ErrorsOf(e.model)})
		correct += int64(c)
		between()
	}
	return chunks, correct, nil
}

// Alone evaluates the whole test set on this rank.
func (e *Evaluator) Alone() (s Sum, err error) {
	chunks, correct, err := e.evalChunks(0, e.chunks(), func() {})
	add(&s, chunks, correct)
	return s, err
}

// part is one rank's share of an evaluation. The sums of chunks travel as their bits: they may be infinite or not a number.
type part struct {
	Bits    [][3]uint64
	Correct int64
}

// Sum is the result of an evaluation. Chunks are added in order, so that the bits do not depend on the number of ranks.
type Sum = metrics.Sums

func add(s *Sum, chunks []chunk, correct int64) {
	for _, c := range chunks {
		s.Loss, s.Absolute, s.Squared = s.Loss+c.loss, s.Absolute+c.Absolute, s.Squared+c.Squared
	}
	s.Correct += correct
}

// Together evaluates snapshots on all ranks: each that can computes its share of the chunks. Only rank 0 gets the sums. It gets
// fewer than asked for if the run was interrupted, which goOn tells on rank 0.
func (e *Evaluator) Together(indices []int64, goOn func() bool) ([]Sum, error) {
	r := e.station
	first, last := 0, 0
	ranks := r.Evaluators()
	if i := slices.Index(ranks, r.Me); i >= 0 {
		first, last = e.chunks()*i/len(ranks), e.chunks()*(i+1)/len(ranks)
	}
	var sums []Sum
	for _, k := range indices {
		if err := e.FetchAndWait(k); err != nil {
			return nil, err
		}
		chunks, correct, err := e.evalChunks(first, last, r.Transport.Tick)
		if err != nil {
			return nil, err
		}
		own := part{Correct: correct}
		for _, c := range chunks {
			own.Bits = append(own.Bits, [3]uint64{math.Float64bits(c.loss), math.Float64bits(c.Absolute), math.Float64bits(c.Squared)})
		}
		all, err := link.Gather(r.Net, own)
		if err != nil {
			return nil, err
		}
		continues := true
		if r.Me == 0 {
			if continues = goOn(); continues {
				sums = append(sums, sumOf(all))
			}
		}
		if err := link.Spread(r.Net, &continues); err != nil {
			return nil, err
		}
		if !continues { // the sums are incomplete
			break
		}
	}
	return sums, nil
}

// sumOf adds up the parts of all ranks, in rank order, which is the order of the chunks.
func sumOf(parts []part) (s Sum) {
	for _, p := range parts {
		chunks := make([]chunk, len(p.Bits))
		for i, bits := range p.Bits {
			chunks[i] = chunk{math.Float64frombits(bits[0]), workload.Errors{Absolute: math.Float64frombits(bits[1]),
				Squared: math.Float64frombits(bits[2])}}
		}
		add(&s, chunks, p.Correct)
	}
	return s
}
