package train

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/station"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// Batches that rank 0 deals anew (internal/policy/work). A worker reports to rank 0 when it has computed the last iteration of its
// plan, for all ranks of its team, and starts the next iteration when its batch is known. It pushes and pulls
// meanwhile.
//
//	member                      worker                                          rank 0
//	computes; COMPUTED ───────► computes Until-1; MEASURED, one a rank ───────► waits for the reports of all
//	                            its node waits before Until (core.DealUntil)    asks the policy
//	deals itself other rows ◄── and ◄────────────────────────────── DEALT ×N    tells all, a record for each rank's batch

// dealing is the part of a rank that computes; nil where batches never change. The driver uses all fields but those of sampling.
type dealing struct {
	w       *Side
	current work.Assignment
	coming  []int        // the batches of the next assignment, whose records arrive
	tallies []work.Tally // of the present plan, by rank of the team; a member has none
	ended   []work.Tally // of the plan before, which rank 0 may not have when it writes a checkpoint
	index   []int        // by rank of the team: its index among the ranks that compute
	heard   int          // members that have computed the present iteration
	told    int64        // the end of the plan that was reported last
	pauses  int32        // pauses of the run so far
	sampling
}

// sampling belongs to the goroutine that computes.
type sampling struct {
	iter    int64           // to compute
	known   work.Assignment // as of the last iteration
	sampled int64           // number of the assignment that the sampler deals out; -1: none
	isDealt bool
	covers  func() bool
	take    func()
}

// makeDealing makes the dealing of a run whose batches change. The first assignment follows from the configuration.
func (w *Side) makeDealing() error {
	r := w.station
	c, err := r.Config.NewDealer(r.Roles.Computes(), r.Set.Train.Rows(), nil, 0)
	if err != nil || c == nil {
		return err
	}
	d := &dealing{w: w, current: *c.Current(), sampling: sampling{known: work.Assignment{Until: -1}, sampled: -1}}
	if team := r.Roles.Team(w.me); w.member == nil {
		d.tallies, d.ended = make([]work.Tally, len(team)), make([]work.Tally, len(team))
		for _, rank := range team {
			d.index = append(d.index, slices.Index(r.Roles.Computing(), rank))
		}
	}
	d.beginTallies()
	d.covers = func() bool { return d.current.Covers(d.iter) }
	d.take = func() { d.isDealt, d.known = d.current.Covers(d.iter), d.current }
	w.dealing = d
	return nil
}

// beginTallies begins to tally the present plan.
func (d *dealing) beginTallies() {
	d.tallies, d.ended = d.ended, d.tallies
	for i := range d.tallies {
		d.tallies[i].Begin(d.current.Until)
	}
}

// until is the first iteration whose batch is not known; 0: all are.
func (d *dealing) until() int64 {
	if d == nil {
		return 0
	}
	return d.current.Until
}

// awaitDealt deals the rows of an iteration. A member, or a worker without a node, waits for them. It returns false if the run has failed.
func (it *iteration) awaitDealt(iter int64) bool {
	d := it.w.dealing
	if d == nil || d.known.Covers(iter) {
		return true
	}
	d.iter, d.isDealt = iter, false
	it.timing.waited += it.w.site.await(true, d.covers, d.take)
	if !d.isDealt {
		return false
	}
	if d.known.Number != d.sampled {
		from := it.w.station.Transport.Now()
		defer func() { it.timing.waited += it.w.station.Transport.Now() - from }() // to deal rows is not computing
		d.sampled = d.known.Number
		it.w.feed.sampler.Assign(layout.RowsOf(it.w.station.Config, &d.known, it.w.index, it.w.station.Set.Train.Rows()))
	}
	return true
}

// computed counts an iteration of this rank.
func (d *dealing) computed(iter, samples int64, took time.Duration) {
	switch {
	case d == nil:
	case d.w.member != nil:
		d.w.station.Net.Send(d.w.member.leader,
			&wire.Header{Kind: wire.Computed, Worker: int32(d.w.index), Iter: iter, Samples: samples, Blocked: int64(took)})
	default:
		d.count(0, samples, took)
		if d.w.leader == nil {
			d.teamComputed(iter)
		}
	}
}

// count adds an iteration of a rank of the team to its tally.
func (d *dealing) count(place int, samples int64, took time.Duration) {
	d.tallies[place].Add(samples, took, int(samples) == d.current.Batches[d.index[place]])
}

// memberComputed handles the time of a member.
func (d *dealing) memberComputed(from int, m *wire.Record) {
	h, place := &m.Header, slices.Index(d.w.station.Roles.Team(d.w.me), from)
	if !d.w.station.Accepts(from, m, d.w.leader != nil && place > 0 && h.Iter == d.w.leader.team.Iter() && h.Samples >= 0 && h.Blocked >= 0) {
		return
	}
	d.heard++
	d.count(place, h.Samples, time.Duration(h.Blocked))
	d.w.leader.end()
}

// hasHeard says whether the times of all members in this iteration are there.
func (d *dealing) hasHeard() bool { return d == nil || d.heard == len(d.tallies)-1 }

// teamComputed reports to rank 0 when all ranks of the team have computed the last iteration of the plan.
func (d *dealing) teamComputed(iter int64) {
	if d == nil {
		return
	}
	d.heard = 0
	if iter+1 == d.current.Until {
		d.report()
	}
}

// report reports the present plan, once.
func (d *dealing) report() {
	if d.told == d.current.Until {
		return
	}
	d.told = d.current.Until
	for place := range d.tallies {
		m := d.tallies[place].Measured()
		d.send(place, wire.Header{Iter: d.current.Until, Clock: m.Iterations, Samples: m.Samples, Blocked: int64(m.Took),
			Version: int64(m.Median)})
	}
}

// leave tells rank 0 that the team computes nothing any more, or pauses.
func (d *dealing) leave() {
	if d == nil {
		return
	}
	for place := range d.tallies {
		d.send(place, wire.Header{Flags: wire.Over})
	}
}

func (d *dealing) send(place int, h wire.Header) {
	h.Kind, h.Worker, h.Epoch = wire.Measured, int32(d.index[place]), d.pauses
	d.w.station.Net.Send(0, &h)
}

// receive handles a record of the next assignment: the batch of one rank.
func (d *dealing) receive(from int, m *wire.Record) {
	h, n := &m.Header, d.w.station.Roles.Computes()
	if h.Flags&wire.Stop != 0 && from == 0 && d.w.node != nil && !d.w.exchangeAfter {
		d.w.step(core.Input{Kind: core.Arrived, Msg: *h})
		return
	}
	ok := from == 0 && int(h.Worker) == len(d.coming) && int(h.Worker) < n && h.Part >= 0 && int(h.Part) <= d.w.station.Config.BatchMax(n) &&
		h.Iter >= 0 && h.Clock > max(d.current.Until, h.Iter) && h.Version >= d.current.Number
	if !d.w.station.Accepts(from, m, ok) {
		return
	}
	if d.coming = append(d.coming, int(h.Part)); len(d.coming) < n {
		return
	}
	d.current = work.Assignment{Number: h.Version, From: h.Iter, Until: h.Clock, Batches: slices.Clone(d.coming),
		Epoch: h.Flags&wire.Over != 0}
	d.coming = d.coming[:0]
	d.beginTallies()
	d.w.idle.lastHeader = d.w.station.Net.Clock()
	if d.w.node == nil || d.w.exchangeAfter {
		d.w.site.stepped()
		return
	}
	d.w.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Dealt, Clock: d.current.Until}})
}

// save adds to a worker's state what its team has measured.
func (d *dealing) save(s *State) {
	if d == nil {
		return
	}
	for i := range d.tallies {
		s.Tallies = append(s.Tallies, d.tallies[i].Clone(), d.ended[i].Clone())
	}
}

// resume restores the assignment, and what the team has measured of its plan. Without that, as in a run of other
// ranks, the plan counts from now on.
func (d *dealing) resume(from *work.Assignment, tallies []work.Tally) {
	if d == nil {
		return
	}
	d.current = *from
	for i := range d.tallies {
		d.tallies[i].Begin(from.Until)
		for k := 2 * i; k < 2*i+2 && len(tallies) == 2*len(d.tallies); k++ {
			if tallies[k].Until == from.Until {
				d.tallies[i] = tallies[k].Clone()
			}
		}
	}
}

// begin is called when the worker begins or continues. A worker that resumes at the end of its plan reports it, as it may not have before.
func (d *dealing) begin() {
	if d != nil && d.w.node != nil && !d.w.exchangeAfter && d.current.Until > 0 && d.w.node.Next() >= d.current.Until {
		d.report()
	}
}

// renew is called when the run continues after a pause.
func (d *dealing) renew() {
	if d != nil {
		d.pauses++
	}
}

// Samples is the number of samples of all ranks in an iteration that this rank computed last, in a run without servers.
func (w *Side) Samples(iter int64) (n int64) {
	c, computes := w.station.Config, w.station.Roles.Computes()
	d := w.dealing
	for i := range computes {
		if d == nil {
			n += int64(layout.BatchOf(c, computes, i))
		} else {
			n += int64(d.known.Samples(i, iter, w.station.Set.Train.Rows()))
		}
	}
	return n
}

// explain says what a rank that waits for its batch waits for.
func (d *dealing) explain() string {
	if d == nil || d.w.node == nil || !d.w.node.AwaitsBatch() {
		return ""
	}
	return fmt.Sprintf("; its batch from iteration %d on, which rank 0 deals when all workers have computed iteration %d", d.current.Until,
		d.current.Until-1)
}

// feed is the source of a worker's samples.
type feed struct {
	sampler *dataset.Sampler
	augment *images.Augmenter
	batch   workload.Batch
	rows    []int32
	holds   int64          // the iteration whose batch this is; -1: none yet
	ahead   *dataset.Ahead // nil: nobody asks ahead
}

// take makes the batch of an iteration, if it was not made while the device computed the iteration before.
func (f *feed) take(iter int64, from dataset.Table) error {
	if f.holds == iter {
		return nil
	}
	err := f.gather(iter, from)
	if err == nil {
		f.holds = iter
	}
	return err
}

// gather draws the rows of an iteration, and makes their batch.
func (f *feed) gather(iter int64, from dataset.Table) error {
	f.rows = f.sampler.Batch(iter, f.rows)
	err := f.batch.Take(from, f.rows)
	if f.ahead != nil && err == nil {
		f.ahead.Next(from, func(rows []int32) []int32 { return f.sampler.Batch(iter+1, rows) })
	}
	f.augment.Apply(f.batch.X, iter)
	return err
}

// newFeed deals out the samples of one of the ranks that compute. The feed has no batch yet.
func newFeed(r *station.Station, index int) (feed, error) {
	c, n := r.Config, r.Roles.Computes()
	batch := layout.BatchOf(c, n, index)
	rows, err := layout.InitialRows(c, n, index, r.Set)
	if err != nil {
		return feed{}, err
	}
	return feed{sampler: dataset.NewSampler(rows, batch, c.Seed, index).Within(c.Data.Deal.WindowRows()),
		augment: images.NewAugmenter(c.Data.Augment, r.Set.Image, c.Seed, index),
		rows:    make([]int32, 0, batch), holds: -1, ahead: dataset.NewAhead(c.Data.Deal.WindowRows())}, nil
}
