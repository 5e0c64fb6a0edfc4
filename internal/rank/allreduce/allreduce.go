// Package allreduce is `baseline: allreduce`: instead of sending gradients to servers, the ranks add them up with a
// collective, as the exchange of their workers.
package allreduce

import (
	"fmt"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/digest"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/status"
	"fluentps/ps/workload"
)

// The tail follows the gradients in the first bucket: the counts that rank 0 needs of the other ranks, and its request to
// stop.
const (
	tailLoss = iota
	tailCorrect
	tailBlocked
	tailStop
	tailLen // number of elements
)

var _ = [1]struct{}{}[tailLen-shard.BucketTail] // the simulator counts BucketTail

// AllReduce is `baseline: allreduce` on one rank: instead of pushing and pulling, the ranks add up their gradients with a
// collective, and each takes the same optimizer step on its own copy of the parameters. All ranks are in the same
// iteration. The end of the run either follows from numbers that all ranks know or is told in the sums, so that all ranks
// end after the same iteration.
type AllReduce struct {
	station       *station.Station
	observer      Observer // nil except on rank 0
	worker        *train.Side
	reducer       comm.Reducer // of the algorithm that was chosen
	algorithms    []algorithm  // those to choose from; then the chosen one alone
	Algorithm     string       // its name
	params        *comm.Buf    // of the worker, like grads
	grads         *comm.Buf
	stores        []*optim.Store // by shard of the plan, which has one server
	buckets       []shard.Bucket // in the order in which backward completes them
	bucketOf      []int          // by piece
	missing       []int          // by bucket: pieces that are not ready in this iteration
	nextBucket    int            // the first bucket whose sum has not begun
	inFlight      int            // number of sums that have begun and are not complete
	batch         int64          // samples of all ranks in the present iteration
	version       int64          // number of steps taken
	samples       int64
	stopAsked     bool // on rank 0: stop for a reason that only rank 0 knows
	ended         bool
	snapshots     map[int64]*comm.Buf // on rank 0: versions kept for evaluation
	digests       *digest.Log         // on rank 0; nil: none are kept
	clip          *steps.Clip         // of the mean of all ranks; nil: it is not clipped
	snapshotsFull bool                // a snapshot was left out for want of memory, and the warning was given
	warned        int64               // iteration whose wait was explained; -1: none
}

// Observer hears, on rank 0, of the steps that all ranks take alike.
type Observer interface {
	Reduced(Iteration)                       // an iteration of all ranks is over
	Snapshotted(k, samples, iteration int64) // snapshot k was taken, after so many samples and iterations
}

// Iteration describes one iteration of all ranks.
type Iteration struct {
	Version, Samples int64 // versions so far; samples of this iteration
	Loss             float64
	Correct, Blocked int64
	Rate             float64 // learning rate
}

// New makes the exchange that replaces a worker's pushes and pulls. observer and digests are nil except on rank 0.
func New(r *station.Station, worker *train.Side, observer Observer, digests *digest.Log) (*AllReduce, error) {
	reducer, ok := r.Transport.(comm.Reducer)
	if !ok {
		return nil, fmt.Errorf("baseline allreduce: the transport %T has no collective sum", r.Transport)
	}
	update, err := r.Config.Update()
	if err != nil {
		return nil, err
	}
	a := &AllReduce{station: r, observer: observer, worker: worker, digests: digests, buckets: r.Plan.Buckets(),
		snapshots: map[int64]*comm.Buf{}, warned: -1, clip: steps.NewMeanClip(r.Config.Train.Clip, r.Plan)}
	a.bucketOf, a.missing = r.Plan.BucketOf(a.buckets), make([]int, len(a.buckets))
	for id := range r.Plan.Shards {
		st := r.Build().Store(int32(id), update)
		st.Spread(r.Config.Device.Threads, station.Parallel)
		a.stores = append(a.stores, st)
	}
	a.params, a.grads = worker.ExchangeBy(a)
	if err := a.openSums(reducer); err != nil {
		return nil, err
	}
	for i := range r.Plan.Shards {
		sh := &r.Plan.Shards[i]
		if err := r.Build().Fill(a.params.F32()[sh.Lo:sh.Hi], sh, r.Model.Architecture); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Train runs iterations until the budget is used up.
func (a *AllReduce) Train() error {
	r, w := a.station, a.worker
	for !a.ended {
		a.begin()
		w.Iterate(a.version)
		if err := r.Net.Drive(func() bool { return a.nextBucket == len(a.buckets) && a.inFlight == 0 }); err != nil {
			return err
		}
		a.batch = w.Samples(a.version)
		a.commit()
	}
	return nil
}

func (a *AllReduce) begin() {
	a.nextBucket = 0
	clear(a.missing)
	for _, k := range a.bucketOf {
		a.missing[k]++
	}
}

// AllReduce is the worker's train.Exchange. Readable, Writable and Over are always true, because an iteration starts after the end
// of the previous exchange.
func (a *AllReduce) Readable(int) bool  { return true }
func (a *AllReduce) Writable(int) bool  { return true }
func (a *AllReduce) Over() bool         { return true }
func (a *AllReduce) Prepare(int, int64) {}
func (a *AllReduce) TaskDone()          {}

func (a *AllReduce) Forwarded(h wire.Header) {
	t := a.grads.F32()[a.station.Plan.Arena:]
	t[tailLoss], t[tailCorrect], t[tailBlocked], t[tailStop] = float32(h.Loss), float32(h.Correct), float32(h.Blocked), 0
	if a.stopAsked {
		t[tailStop] = 1
	}
}

func (a *AllReduce) LayerReady(layer int) {
	a.station.Net.Begin()
	for _, p := range a.worker.Pieces(layer) {
		a.missing[a.bucketOf[p]]--
		a.startSums()
	}
	a.station.Net.End()
}

// startSums begins the sums of complete buckets, in the same order on all ranks.
func (a *AllReduce) startSums() {
	for a.nextBucket < len(a.buckets) && a.missing[a.nextBucket] == 0 {
		b := a.buckets[a.nextBucket]
		if a.nextBucket == 0 {
			b.Hi += tailLen
		}
		a.nextBucket++
		a.inFlight++
		a.lookAtBucket(&a.buckets[a.nextBucket-1])
		n := (b.Hi - b.Lo) * shard.ElemBytes
		a.station.Net.Traffic.Sent += int64(n)
		bucket, from := a.nextBucket-1, a.station.Net.Clock()
		a.reducer.Iallreduce(a.grads, b.Lo*shard.ElemBytes, n, func(d comm.Done) {
			a.inFlight--
			a.worker.Timeline().Summed(a.version, bucket, from)
			a.station.Net.Traffic.Received += int64(d.N)
			if d.Err != nil {
				a.station.Net.Fail(fmt.Errorf("allreduce: iteration %d: %w", a.version, d.Err))
			}
		})
	}
}

// commit takes the step along the sums, and the same decisions on every rank.
func (a *AllReduce) commit() {
	r, w := a.station, a.worker
	now := r.Transport.Now()
	w.Exchanged(now)
	params, sums := a.params.F32(), a.grads.F32()
	scale := a.clip.Mean(sums, a.batch)
	for id, st := range a.stores {
		sh := &r.Plan.Shards[id]
		st.Fold(0, sums[sh.Lo:sh.Hi], 0, 1)
		st.Commit(params[sh.Lo:sh.Hi], params[sh.Lo:sh.Hi], float64(a.version), 1, a.weight(sh, scale)) // in place
		a.lookAtFault(sh, st)
	}
	before := a.samples
	a.version++
	for id := range a.stores {
		sh := &r.Plan.Shards[id]
		a.digests.Note(a.version, int32(id), params[sh.Lo:sh.Hi])
	}
	a.samples += a.batch
	stepped := r.Transport.Now()
	w.Stepped(stepped - now)
	w.Timeline().OwnStep(a.version-1, now, stepped)
	tail := sums[r.Plan.Arena:]
	b := layout.BudgetOf(r.Config, r.Set.Train.Rows(), r.Roles)
	a.ended = tail[tailStop] > 0 || b.Samples > 0 && a.samples >= b.Samples || b.Updates > 0 && a.version >= b.Updates
	if a.observer == nil {
		return
	}
	if every := r.Config.Evaluate.Samples(r.Set.Train.Rows()); every > 0 && a.samples/every > before/every {
		a.keepSnapshot(a.samples/every - 1)
	}
	a.observer.Reduced(Iteration{Version: a.version, Samples: a.batch, Loss: float64(tail[tailLoss]),
		Correct: int64(tail[tailCorrect]), Blocked: int64(tail[tailBlocked]),
		Rate: a.stores[0].Rate(float64(a.version - 1))})
}

// Clipped counts the iterations whose mean was clipped, among all; 0 of 0 where none is.
func (a *AllReduce) Clipped() (clipped, of int64) { return a.clip.Counts() }

// weight makes the mean of a shard's sums. Statistics are not clipped.
func (a *AllReduce) weight(sh *shard.Shard, scale float32) float64 {
	if sh.Stat {
		return 1 / float64(a.batch)
	}
	return float64(scale) / float64(a.batch)
}

// keepSnapshot copies the parameters on rank 0, for an evaluation.
func (a *AllReduce) keepSnapshot(k int64) {
	r := a.station
	if int64(len(a.snapshots)) >= r.SnapshotsMax {
		if !a.snapshotsFull {
			r.Log.Warn("no room for more snapshots: some evaluations are left out; raise evaluate.every_epochs (or "+
				"every_samples) or cluster.memory_max", "kept", r.SnapshotsMax)
		}
		a.snapshotsFull = true
		return
	}
	b, err := r.Transport.Alloc(a.params.Len())
	if err != nil {
		r.Net.Fail(fmt.Errorf("snapshot %d: %w", k, err))
		return
	}
	copy(b.Bytes(), a.params.Bytes())
	a.snapshots[k] = b
	a.observer.Snapshotted(k, a.samples, a.version)
}

// Forget frees the snapshots up to k.
func (a *AllReduce) Forget(k int64) {
	for i, b := range a.snapshots {
		if i <= k {
			b.Free()
			delete(a.snapshots, i)
		}
	}
}

// SendSnapshot sends snapshot k to a rank; k = -1 is the current version.
func (a *AllReduce) SendSnapshot(to int, k int64) {
	r := a.station
	b := a.snapshots[k]
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

// Hash is the hash of this rank's parameters, in model order.
func (a *AllReduce) Hash() string {
	return workload.HashOf(a.station.Plan.Views(a.params.F32())...)
}

// Stalled returns a warning if the worker has waited for the other ranks for at least limits.Warn and has not warned in
// this iteration, and the reason to abort if it has waited for at least limits.Abort; else "". It cannot name the rank that
// is late: no waiting rank knows it. A wait counts from the time awake at the earliest.
func (a *AllReduce) Stalled(limits configs.Stall, awake time.Duration) (warning, abort string) {
	since, waits := a.worker.Waits()
	if !waits {
		return "", ""
	}
	waited := a.station.Transport.Now() - max(since, awake)
	text := fmt.Sprintf("worker %d has waited %s for the other ranks in the all-reduce of iteration %d", a.worker.Me(),
		waited.Round(time.Second), a.version)
	if limits.Warn > 0 && waited >= limits.Warn && a.warned != a.version {
		a.warned = a.version
		warning = text
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		abort = text
	}
	return warning, abort
}

// Status is what the worker does now.
func (a *AllReduce) Status() *status.Worker {
	of := &status.Worker{Name: fmt.Sprintf("w%d", a.worker.Me()), Iteration: a.version, Doing: status.Computes}
	if since, waits := a.worker.Waits(); waits {
		of.Doing, of.ForS = status.Waits, (a.station.Transport.Now() - since).Seconds()
		of.Others = []string{"the other ranks in the all-reduce"}
	}
	return of
}

// Text describes the state of the exchange.
func (a *AllReduce) Text() string {
	return fmt.Sprintf("allreduce version=%d begun=%d/%d open=%d", a.version, a.nextBucket, len(a.buckets), a.inFlight)
}

// Stop ends training with the next iteration, for a reason that only rank 0 knows.
func (a *AllReduce) Stop() { a.stopAsked = true }

// Ended says that training is over.
func (a *AllReduce) Ended() bool { return a.ended }
