package coordinate

import (
	"slices"
	"time"

	"fluentps/ps/link"
	"fluentps/ps/resume"
)

// Checkpoints while training goes on, where versions are no cuts: all workers stop after the iteration that they are in, as
// at the end of training (ps/core/pause.go), everything is kept (keep.go of ps/serve and ps/train), and new nodes go on while it is written. That
// costs the wait for the slowest worker's iteration, the copying of all but parameters, and a pull of these.

// pauses says whether the run makes its checkpoints so.
func (r *Run) pauses() bool {
	return r.station.Config.Checkpoint.Periodic() && r.Folder != nil && r.Reduce == nil && !r.station.Config.InStep()
}

// GoesOn is called by all ranks when their nodes are done. It says whether that was a pause, and then training has begun
// again.
func (r *Run) GoesOn() (bool, error) {
	if !r.pauses() {
		return false, nil
	}
	next := int64(0)
	if r.Worker != nil {
		next = r.Worker.Next()
	}
	all, err := link.Gather(r.station.Net, next)
	if err != nil {
		return false, err
	}
	var on struct {
		Again  bool
		Starts []int64 // by worker: the iteration that it computes next
	}
	if l := r.Lead; l != nil {
		on.Again = l.kept.snapshots.goesOn(r.Server.Spent())
		for _, rank := range r.station.Roles.Workers {
			on.Starts = append(on.Starts, all[rank])
		}
	}
	if err := link.Spread(r.station.Net, &on); err != nil || !on.Again {
		return false, err
	}
	q := &resume.Origin{Starts: on.Starts}
	r.keepAll(q)
	if err := r.Search.AlignClocks(q); err != nil {
		return false, err
	}
	if err := r.renew(q); err != nil {
		return false, err
	}
	if err := r.station.Transport.Barrier(); err != nil { // a worker's first pull must find the new node
		return false, err
	}
	if l := r.Lead; l != nil {
		l.kept.snapshots.paused = r.station.Now() - l.kept.snapshots.pausedAt
	}
	r.BeginWorker(r.station.Transport.Now())
	return true, nil
}

// keepAll keeps what this rank saves, and begins to write it.
func (r *Run) keepAll(q *resume.Origin) {
	if r.Lead != nil {
		r.Lead.kept.snapshots.named(slices.Clone(q.Starts))
	}
	if r.Server != nil {
		q.Server = r.Server.KeepAll()
	}
	if r.Worker != nil {
		r.Worker.KeepAll()
	}
}

// renew makes the nodes anew, where the others stood.
func (r *Run) renew(q *resume.Origin) error {
	if r.Server != nil {
		if err := r.Server.Renew(q.Start()); err != nil {
			return err
		}
	}
	if r.Worker != nil {
		r.Worker.Renew(q.Start())
	}
	if l := r.Lead; l != nil {
		l.kept.snapshots.goOn = false
		if l.end.ended { // it was too late for the old node
			r.stopNow()
		}
	}
	return nil
}

// BeginWorker lets this rank's worker begin, where it has one; it waits since that time.
func (r *Run) BeginWorker(since time.Duration) {
	if w := r.Worker; w != nil {
		w.Begin(since)
	}
}
