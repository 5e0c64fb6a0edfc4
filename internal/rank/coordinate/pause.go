package coordinate

import (
	"slices"
	"time"

	"fluentps/internal/rank/link"
	"fluentps/internal/rank/resume"
)

// Checkpoints during training under schemes whose versions are no cuts: all workers stop after their current iteration, as
// at the end of training (internal/core/servernode/stop.go), all state is kept (internal/rank/serve/keep.go,
// internal/rank/train/state.go), and new nodes continue while a goroutine writes it. That costs the wait for the slowest worker's
// iteration, a copy of all state but the
// parameters, and a pull of the parameters.

// pauses says whether the run makes its checkpoints in pauses.
func (r *Run) pauses() bool {
	return r.station.Config.Checkpoint.Periodic() && r.Folder != nil && r.Reduce == nil && !r.station.Config.InStep()
}

// ContinueAfterPause is called by all ranks when their nodes are done. It returns true if that was a pause; training has
// then begun again.
func (r *Run) ContinueAfterPause() (bool, error) {
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
	var decision struct {
		Again  bool
		Starts []int64 // by worker: its next iteration
	}
	if l := r.Lead; l != nil {
		decision.Again = l.checkpoints.snapshots.nodesDone(r.Server.Spent())
		for _, rank := range r.station.Roles.Workers {
			decision.Starts = append(decision.Starts, all[rank])
		}
	}
	if err := link.Spread(r.station.Net, &decision); err != nil || !decision.Again {
		return false, err
	}
	q := &resume.Origin{Starts: decision.Starts}
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
		l.checkpoints.snapshots.paused = r.station.Now() - l.checkpoints.snapshots.pausedAt
	}
	r.BeginWorker(r.station.Transport.Now())
	return true, nil
}

// keepAll keeps the state of this rank's sides, and begins to write it.
func (r *Run) keepAll(q *resume.Origin) {
	if r.Lead != nil {
		r.Lead.checkpoints.snapshots.named(slices.Clone(q.Starts))
	}
	if r.Server != nil {
		q.Server = r.Server.KeepAll()
	}
	if r.Worker != nil {
		r.Worker.KeepAll()
	}
}

// renew replaces the nodes of this rank, at the clocks of the old ones.
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
		l.checkpoints.snapshots.continuing = false
		l.deals.pauses++
		if l.end.isFinal { // the old node was told too late
			r.stopNow()
		}
	}
	return nil
}

// BeginWorker starts this rank's worker, if it has one. The worker has waited since the given time.
func (r *Run) BeginWorker(since time.Duration) {
	if w := r.Worker; w != nil {
		w.Begin(since)
	}
}
