package coordinate

import (
	"fmt"
	"math"
	"strings"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/rank/allreduce"
)

// Keeper keeps versions of the parameters for ranks that evaluate.
type Keeper interface {
	SendSnapshot(to int, k int64)
	Forget(k int64)
}

// stopNow ends the run for a reason that only rank 0 knows.
func (r *Run) stopNow() {
	if r.Reduce != nil {
		r.Reduce.Stop()
		return
	}
	r.Lead.end.isFinal = true
	r.Lead.checkpoints.snapshots.stopped(false, "")
	r.Server.Step(core.Input{Kind: core.StopNow})
}

// stopping says, on rank 0, whether training is to end. A node that stops for a pause does not end it.
func (r *Run) stopping() bool {
	if r.Reduce != nil {
		return r.Reduce.Ended()
	}
	return r.Server.Stopping() && (!r.Lead.checkpoints.snapshots.pausing() || r.Lead.end.isFinal || r.Server.Spent())
}

// atBarrier handles a worker's arrival at the barrier of rank 0, which takes the part of PS-Lite's scheduler process.
func (r *Run) atBarrier(h wire.Header) {
	r.releases = r.Scheduler.Step(core.Input{Kind: core.Arrived, Msg: h}, r.releases[:0])
	for i := range r.releases {
		e := &r.releases[i]
		r.station.Net.Send(r.station.Roles.Workers[e.To], &e.Msg)
	}
}

// differingRanks names the ranks whose final parameters differ from those of the first, under a baseline that gives every
// rank all of them; "" if none.
func (r *Run) differingRanks(reports []report) string {
	first := -1
	var others []string
	for i, rep := range reports {
		switch {
		case rep.Worker == nil || rep.Worker.Hash == "":
		case first < 0:
			first = i
		case rep.Worker.Hash != reports[first].Worker.Hash:
			others = append(others, r.station.Net.Place(i))
		}
	}
	if others == nil {
		return ""
	}
	return fmt.Sprintf("after the all-reduce the parameters on %s differ from those on %s; use another MPI or another "+
		"of its algorithms", strings.Join(others, "; "), r.station.Net.Place(first))
}

// algorithm names how an all-reduce adds up gradients; "" without one.
func (r *Run) algorithm() string {
	if r.Reduce == nil {
		return ""
	}
	return r.Reduce.Algorithm
}

// Reduced counts an iteration of all ranks.
func (l *Lead) Reduced(i allreduce.Iteration) {
	l.counts.accepted += int64(len(l.station.Roles.Workers))
	w := &l.window
	w.loss += i.Loss
	w.samples += i.Samples
	w.correct += i.Correct
	w.blocked += i.Blocked
	if math.IsNaN(i.Loss) || math.IsInf(i.Loss, 0) {
		l.diverged(fmt.Sprintf("the train loss is %v in iteration %d", i.Loss, i.Version-1))
	}
	l.counts.epoch.Add(i.Loss, i.Samples)
	l.Committed(i.Version, i.Samples, i.Rate)
}

// Snapshotted notes a snapshot that needs no server, and so is complete.
func (l *Lead) Snapshotted(k, samples, iteration int64) {
	l.evals.marks[k] = mark{at: l.station.Now(), samples: samples, iteration: iteration}
	l.snapshotComplete(k)
}
