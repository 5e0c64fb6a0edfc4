package sim

import (
	"fmt"
	"time"

	"fluentps/ps/metrics"
)

// Traces are the computing times of a recorded run for Options.Traces: each worker's own, without the slowness that
// was injected into it, which the faults of the simulation add again.
func Traces(iterations [][]metrics.Iteration) [][]time.Duration {
	all := make([][]time.Duration, len(iterations))
	for w, of := range iterations {
		all[w] = make([]time.Duration, len(of))
		for i := range of {
			all[w][i] = of[i].Own()
		}
	}
	return all
}

// refuseCompute says why there is no computing time for each worker.
func refuseCompute(o *Options) error {
	m := &o.Config.Simulate
	if m.Noise.Kind == "trace" {
		if n := len(o.Traces); n != m.Workers {
			return fmt.Errorf("simulate.noise.path: %s has the times of %d workers, and simulate.workers is %d; simulate %d, or take another noise.kind (after --calibrate: --fitted)",
				m.Noise.Path, n, m.Workers, n)
		}
		for w, t := range o.Traces {
			if len(t) == 0 {
				return fmt.Errorf("simulate.noise.path: %s has no iteration of worker %d", m.Noise.Path, w)
			}
		}
	}
	if n := len(m.PerWorker); n > 0 && n != m.Workers {
		return fmt.Errorf("simulate.per_worker has %d values, and simulate.workers is %d; give each worker its own, or set simulate.per_worker=[], which takes all for alike", n, m.Workers)
	}
	return nil
}

// mean is the mean over all times.
func mean(traces [][]time.Duration) time.Duration {
	var sum time.Duration
	n := 0
	for _, t := range traces {
		for _, d := range t {
			sum += d
		}
		n += len(t)
	}
	return sum / time.Duration(max(1, n))
}
