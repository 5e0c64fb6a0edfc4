package coordinate

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/policy/work"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/metrics/timings"
)

// ResumeSides puts the sides of this rank at the checkpoint.
func (r *Run) ResumeSides() error {
	if r.Lead != nil {
		r.Lead.resume(r.From)
	}
	q := r.From
	if r.Server != nil {
		r.Server.Resume(q.Start(), q.Server, q.ServerVectors)
		q.ServerVectors = nil
	}
	if r.Worker != nil {
		dealt, err := r.resumedBatches()
		if err == nil {
			err = r.Worker.Resume(q.Worker, q.WorkerVectors, dealt)
		}
		if err != nil {
			return fmt.Errorf("checkpoint %s: %w", q.Dir, err)
		}
		q.WorkerVectors = nil
	}
	return nil
}

// resumedBatches is the assignment that the run resumes with, as rank 0 finds it; nil: batches never change.
func (r *Run) resumedBatches() (*work.Assignment, error) {
	c, err := r.station.Config.NewDealer(r.station.Roles.Computes(), r.station.Set.Train.Rows(), r.From.State.Work, slices.Max(r.From.Starts))
	if c == nil {
		return nil, err
	}
	return c.Current(), err
}

// resume restores the counters of rank 0.
func (l *Lead) resume(q *resume.Origin) {
	s := &q.State
	l.counts.accepted, l.counts.samples, l.counts.version, l.counts.leadMax = s.Accepted, q.Manifest.Samples, s.Version, s.LeadMax
	rows := l.counts.epoch.Rows
	l.counts.epoch = s.Loss
	l.counts.epoch.Rows = rows
	l.evals.results, l.evals.targetReachedS = s.Evals, s.Target
	l.changes = slices.DeleteFunc(s.Changes, func(c metrics.Change) bool { return c.Iteration > slices.Min(q.Starts) })
	if l.checkpoints.newest = q.Dir; l.r.Search.Adopted != "" { // the next checkpoint replaces an adopted replica
		l.checkpoints.newest = ""
		if dirs := l.r.Search.Candidates; len(dirs) > 0 {
			l.checkpoints.newest = dirs[0]
		}
	}
	l.window.from = s.Trained
	l.counts.before = l.counts.samples
}

// openSinks opens the metrics files: new ones, or those of the run that is resumed.
func (r *Run) openSinks() (records.Sink, error) {
	names, of := r.station.Config.Metrics.Sinks, r.subject(time.Now())
	switch {
	case r.From != nil:
		of.Began, of.Start = of.Now.Add(-r.From.State.Trained), r.From.Manifest.Iteration
		return records.Resume(r.Folder.Folder, names, r.From.State.Sinks, of)
	case r.Search.Again:
		return records.Resume(r.Folder.Folder, names, nil, of)
	}
	return records.Open(r.Folder.Folder, names, of)
}

// subject says what the records of this run are of.
func (r *Run) subject(now time.Time) records.Subject {
	of := records.Subject{Run: r.station.Config.Name, Began: now, Now: now}
	for i := range r.station.Config.Sync {
		rule := &r.station.Config.Sync[i]
		of.Rules = append(of.Rules, records.Rule{Match: rule.Match, Scheme: rule.Schemes()})
	}
	return of
}

// keptIterations returns the rows of iterations.csv before the checkpoint, and warns of iterations that have none.
func (r *Run) keptIterations() (rows []byte, err error) {
	if r.From == nil || r.Folder == nil {
		return nil, nil
	}
	starts := r.From.Manifest.Starts
	// as many on each host
	if m, computing := r.From.Manifest, r.station.Roles.Computing(); m.Computing == len(computing) && m.Computing > m.Workers {
		starts = make([]int64, len(computing))
		for i, rank := range computing {
			starts[i] = r.From.Starts[r.station.Roles.Leader(rank)]
		}
	}
	rows, r.From.Unrecorded, err = timings.Kept(r.Folder.Folder, starts)
	if n := r.From.Unrecorded; n > 0 {
		r.station.Log.Warn(fmt.Sprintf("iterations.csv lacks the times of %d iterations before iteration %d, over all "+
			"workers: a part of a run that was killed leaves none, and a long one only its first ones", n, r.From.Manifest.Iteration))
	}
	return rows, err
}
