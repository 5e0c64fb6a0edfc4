package sim

import (
	"fmt"
	"time"

	"fluentps/ps/straggler"
)

// ownTimes returns the field Own of traces.
func ownTimes(traces []straggler.Trace) [][]time.Duration {
	all := make([][]time.Duration, len(traces))
	for w, of := range traces {
		for _, it := range of {
			all[w] = append(all[w], it.Own)
		}
	}
	return all
}

// refuseCompute fails if there are no computing times for each worker.
func refuseCompute(o *Options) error {
	m := &o.Config.Simulate
	if err := o.Config.CheckTraces(o.Traces, m.Workers); err != nil {
		return err
	}
	if n := len(m.PerWorker); n > 0 && n != m.Workers {
		return fmt.Errorf("simulate.per_worker has %d values, but simulate.workers is %d; give one value per worker, or set simulate.per_worker=[], which makes all workers alike", n, m.Workers)
	}
	return nil
}
