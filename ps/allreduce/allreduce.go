// Package allreduce is `baseline: allreduce`: in place of servers the ranks add up their gradients with a collective, as the exchange of
// their workers.
package allreduce

import (
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
	"fluentps/ps/station"
	"fluentps/ps/train"
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

// AllReduce is `baseline: allreduce` on one rank: instead of pushing and pulling, the ranks add up their gradients with a
// collective, and each takes the same optimizer step on a copy of its own. All ranks are in the same iteration, and what
// ends the run is either known to all of them or told in the sums, so that all end after the same one.
type AllReduce struct {
	station  *station.Station
	observer Observer // nil but on rank 0
	w        *train.Side
	sum      comm.Reducer
	params   *comm.Buf // those of the worker, as the gradients
	grads    *comm.Buf
	stores   []*optim.Store // by shard of the plan, which has one server
	buckets  []shard.Bucket // in the order in which backward completes them
	of       []int          // the bucket of each piece
	missing  []int          // of each bucket: pieces that are not ready in this iteration
	next     int            // the first bucket whose sum was not begun
	open     int            // sums begun and not complete
	batch    int64          // samples of all ranks in one iteration
	version  int64          // steps taken
	samples  int64
	asked    bool // rank 0: stop for a reason that only it knows
	ended    bool
	snaps    map[int64]*comm.Buf // rank 0: versions kept for evaluation
	full     bool                // one was left out for want of room
	warned   int64               // iteration whose wait was explained, -1: none
}

// Observer hears on rank 0 of what all ranks do alike.
type Observer interface {
	Reduced(Iteration)                       // an iteration of all ranks is over
	Snapshotted(k, samples, iteration int64) // snapshot k was taken, after so many samples and iterations
}

// Iteration is one iteration of all ranks.
type Iteration struct {
	Version, Samples int64 // versions so far, and samples of this one
	Loss             float64
	Correct, Blocked int64
	Rate             float64 // of learning
}

// New makes what takes the place of worker's pushes and pulls. observer is rank 0's, and nil elsewhere.
func New(r *station.Station, worker *train.Side, observer Observer) (*AllReduce, error) {
	sum, ok := r.Transport.(comm.Reducer)
	if !ok {
		return nil, fmt.Errorf("baseline allreduce: the transport %T has no collective sum", r.Transport)
	}
	update, err := r.Config.Update()
	if err != nil {
		return nil, err
	}
	a := &AllReduce{station: r, observer: observer, w: worker, sum: sum, buckets: r.Plan.Buckets(), snaps: map[int64]*comm.Buf{}, warned: -1}
	a.of, a.missing = r.Plan.BucketOf(a.buckets), make([]int, len(a.buckets))
	for id := range r.Plan.Shards {
		st := r.Build().Store(int32(id), update)
		st.Spread(r.Config.Device.Threads, station.Parallel)
		a.stores = append(a.stores, st)
	}
	a.params, a.grads = worker.ExchangeBy(a)
	for k, v := range r.Plan.Views(a.params.F32()) {
		workload.Fill(v, r.Config.Seed, r.Params[k], 0)
	}
	for w := range r.Roles.Workers {
		a.batch += int64(layout.BatchOf(r.Config, len(r.Roles.Workers), w))
	}
	return a, nil
}

// Train runs iterations until the budget is used up.
func (a *AllReduce) Train() error {
	r, w := a.station, a.w
	for !a.ended {
		a.begin()
		w.Iterate(a.version)
		if err := r.Net.Drive(func() bool { return a.next == len(a.buckets) && a.open == 0 }); err != nil {
			return err
		}
		a.commit()
	}
	return nil
}

func (a *AllReduce) begin() {
	a.next = 0
	clear(a.missing)
	for _, k := range a.of {
		a.missing[k]++
	}
}

// AllReduce is the Exchange of the worker. Readable, Writable and Over are true, because iterations wait for each other's end.
func (a *AllReduce) Readable(int) bool  { return true }
func (a *AllReduce) Writable(int) bool  { return true }
func (a *AllReduce) Over() bool         { return true }
func (a *AllReduce) Prepare(int, int64) {}
func (a *AllReduce) TaskDone()          {}

func (a *AllReduce) Forwarded(h wire.Header) {
	t := a.grads.F32()[a.station.Plan.Arena:]
	t[tailLoss], t[tailCorrect], t[tailBlocked], t[tailStop] = float32(h.Loss), float32(h.Correct), float32(h.Blocked), 0
	if a.asked {
		t[tailStop] = 1
	}
}

func (a *AllReduce) LayerReady(layer int) {
	a.station.Net.Begin()
	for _, p := range a.w.Pieces(layer) {
		a.missing[a.of[p]]--
		a.start()
	}
	a.station.Net.End()
}

// start begins the sums of the buckets that are complete, in the same order on all ranks.
func (a *AllReduce) start() {
	for a.next < len(a.buckets) && a.missing[a.next] == 0 {
		b := a.buckets[a.next]
		if a.next == 0 {
			b.Hi += tail
		}
		a.next++
		a.open++
		n := (b.Hi - b.Lo) * shard.ElemBytes
		a.station.Net.Traffic.Sent += int64(n)
		a.sum.Iallreduce(a.grads, b.Lo*shard.ElemBytes, n, func(d comm.Done) {
			a.open--
			a.station.Net.Traffic.Received += int64(d.N)
			if d.Err != nil {
				a.station.Net.Fail(fmt.Errorf("allreduce: iteration %d: %w", a.version, d.Err))
			}
		})
	}
}

// commit takes the step along the sums, and the same decisions on every rank.
func (a *AllReduce) commit() {
	r, w := a.station, a.w
	now := r.Transport.Now()
	w.Exchanged(now)
	params, sums := a.params.F32(), a.grads.F32()
	for id, st := range a.stores {
		sh := &r.Plan.Shards[id]
		st.Fold(0, sums[sh.Lo:sh.Hi], 0, 1)
		st.Commit(params[sh.Lo:sh.Hi], params[sh.Lo:sh.Hi], float64(a.version), 1, 1/float64(a.batch)) // nobody else reads them
	}
	before := a.samples
	a.version++
	a.samples += a.batch
	w.Stepped(r.Transport.Now() - now)
	told := sums[r.Plan.Arena:]
	b := layout.BudgetOf(r.Config, r.Set.Train.Rows(), r.Roles)
	a.ended = told[tailStop] > 0 || b.Samples > 0 && a.samples >= b.Samples || b.Updates > 0 && a.version >= b.Updates
	if a.observer == nil {
		return
	}
	if every := r.Config.Evaluate.Samples(r.Set.Train.Rows()); every > 0 && a.samples/every > before/every {
		a.keep(a.samples/every - 1)
	}
	a.observer.Reduced(Iteration{Version: a.version, Samples: a.batch, Loss: float64(told[tailLoss]), Correct: int64(told[tailCorrect]), Blocked: int64(told[tailBlocked]),
		Rate: a.stores[0].Rate(float64(a.version - 1))})
}

// keep keeps a copy of the parameters, on rank 0, until it was evaluated.
func (a *AllReduce) keep(k int64) {
	r := a.station
	if int64(len(a.snaps)) >= r.SnapshotsMax {
		if !a.full {
			r.Log.Warn("no room for more snapshots: some evaluations are left out; raise evaluate.every_epochs (or every_samples) or cluster.memory_max", "kept", r.SnapshotsMax)
		}
		a.full = true
		return
	}
	b, err := r.Transport.Alloc(a.params.Len())
	if err != nil {
		r.Net.Fail(fmt.Errorf("snapshot %d: %w", k, err))
		return
	}
	copy(b.Bytes(), a.params.Bytes())
	a.snaps[k] = b
	a.observer.Snapshotted(k, a.samples, a.version)
}

// Forget drops the snapshots up to k.
func (a *AllReduce) Forget(k int64) {
	for i, b := range a.snaps {
		if i <= k {
			b.Free()
			delete(a.snaps, i)
		}
	}
}

// SendSnapshot answers a rank that asks rank 0 for snapshot k; -1 is the current version.
func (a *AllReduce) SendSnapshot(to int, k int64) {
	r := a.station
	b := a.snaps[k]
	if k < 0 {
		b = a.params
	}
	if b == nil {
		r.Net.Fail(fmt.Errorf("allreduce: rank %d asks for snapshot %d, which was not kept", to, k))
		return
	}
	for _, p := range r.Plan.Pieces {
		off, n := p.InArena()
		r.Net.Hold()
		r.Transport.Isend(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), b, off, n, func(d comm.Done) {
			r.Net.Let()
			r.Net.Fail(d.Err)
		})
	}
}

// Hash identifies the parameters of this rank, in model order.
func (a *AllReduce) Hash() string {
	var flat []float32
	for _, v := range a.station.Plan.Views(a.params.F32()) {
		flat = append(flat, v...)
	}
	return workload.HashOf(flat)
}

// Stalled says that the worker waits for the other ranks, if that has taken too long and was not said of this iteration, and why it
// gives up, if it has taken far too long; both "" if not. Which rank does not come is known to none of those that wait. No wait is
// longer than since the time awake.
func (a *AllReduce) Stalled(limits configs.Stall, awake time.Duration) (warning, over string) {
	since, waits := a.w.Waits()
	if !waits {
		return "", ""
	}
	waited := a.station.Transport.Now() - max(since, awake)
	text := fmt.Sprintf("worker %d has waited %s for the other ranks in the all-reduce of iteration %d", a.w.Me(), waited.Round(time.Second), a.version)
	if limits.Warn > 0 && waited >= limits.Warn && a.warned != a.version {
		a.warned = a.version
		warning = text
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		over = text
	}
	return warning, over
}

// Text says where the ranks stand.
func (a *AllReduce) Text() string {
	return fmt.Sprintf("allreduce version=%d begun=%d/%d open=%d", a.version, a.next, len(a.buckets), a.open)
}

// Stop ends training with the next iteration, for a reason that only rank 0 knows.
func (a *AllReduce) Stop() { a.asked = true }

// Ended says that training is over.
func (a *AllReduce) Ended() bool { return a.ended }
