package rules

import (
	"time"

	"fluentps/internal/configs/keys"
	"fluentps/ps/workload"
)

// iterationMax is longer than any iteration, and so short that a time of it overflows nowhere.
const iterationMax = 366 * 24 * time.Hour

// crossCost checks what a whole batch takes.
func (w *checks) crossCost(t *keys.Table) {
	batch := max(w.Config.Train.BatchGlobal, w.Config.Train.BatchPerWorker)
	if t.ByPath["train.batch_global"].Bad || t.ByPath["train.batch_per_worker"].Bad {
		return
	}
	for _, path := range []string{"model.compute", "simulate.compute"} {
		l := t.ByPath[path]
		if l == nil || l.Bad || l.Key == nil {
			continue
		}
		if c := l.Ptr.(*workload.Cost); float64(c.Fixed)+float64(c.PerSample)*float64(batch) > float64(iterationMax) {
			w.Fatal(l.Node, path, "set a smaller per_sample, or a smaller batch", "an iteration of %d samples takes more than a year", batch)
		}
	}
}
