package sim

import (
	"fmt"
)

// refuseCompute fails if there are no computing times for each worker.
func refuseCompute(o *Options) error {
	m := &o.Config.Simulate
	if err := o.Config.CheckTraces(o.Traces, m.Workers); err != nil {
		return err
	}
	for key, of := range map[string][]float64{"per_worker": m.PerWorker, "fixed_per_worker": m.FixedPerWorker} {
		if n := len(of); n > 0 && n != m.Workers {
			return fmt.Errorf("simulate.%s has %d values, but simulate.workers is %d; give one value per worker, or set simulate.%s=[], which makes all workers alike", key, n, m.Workers, key)
		}
	}
	return nil
}
