package coordinate

import (
	"fmt"
	"math"

	"fluentps/ps/allreduce"
)

// Reduced counts an iteration of all ranks.
func (l *Lead) Reduced(i allreduce.Iteration) {
	l.counts.accepted += int64(len(l.station.Roles.Workers))
	w := &l.window
	w.loss += i.Loss
	w.samples += i.Samples
	w.correct += i.Correct
	w.blocked += i.Blocked
	if math.IsNaN(i.Loss) || math.IsInf(i.Loss, 0) {
		l.halt(fmt.Sprintf("diverged: the train loss is %v in iteration %d; lower train.optimizer.lr (now %g) or add train.schedule.warm_up",
			i.Loss, i.Version-1, l.station.Config.Train.Optimizer.LR))
	}
	l.counts.epoch.Add(i.Loss, i.Samples)
	l.Committed(i.Version, i.Samples, i.Rate)
}

// Snapshotted notes a snapshot that needs no server, and so is complete.
func (l *Lead) Snapshotted(k, samples, iteration int64) {
	l.evals.marks[k] = mark{at: l.station.Now(), samples: samples, iteration: iteration}
	l.snapshotComplete(k)
}
