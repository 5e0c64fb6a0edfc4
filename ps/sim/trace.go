package sim

import (
	"fmt"
	"time"

	"fluentps/ps/metrics"
)

// Recorded is the time that a worker of a real run worked on an iteration, without the injected slowness, which the faults of the
// simulation add again.
type Recorded struct {
	Own  time.Duration
	Push time.Duration // part of Own: handing gradients to the transport, which the factor of a fault does not lengthen
}

// Traces returns the computing times of a recorded run for Options.Traces.
func Traces(iterations [][]metrics.Iteration) [][]Recorded {
	all := make([][]Recorded, len(iterations))
	for w, of := range iterations {
		all[w] = make([]Recorded, len(of))
		for i := range of {
			own := of[i].Own()
			all[w][i] = Recorded{Own: own, Push: min(own, of[i].Push)}
		}
	}
	return all
}

// ownTimes returns the field Own of traces.
func ownTimes(traces [][]Recorded) [][]time.Duration {
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
	if m.Noise.Kind == "trace" {
		if n := len(o.Traces); n != m.Workers {
			return fmt.Errorf("simulate.noise.path: %s has the times of %d workers, but simulate.workers is %d; simulate %d, or take another noise.kind (with --calibrate: --fitted)",
				m.Noise.Path, n, m.Workers, n)
		}
		for w, t := range o.Traces {
			if len(t) == 0 {
				return fmt.Errorf("simulate.noise.path: %s has no iteration of worker %d", m.Noise.Path, w)
			}
		}
	}
	if n := len(m.PerWorker); n > 0 && n != m.Workers {
		return fmt.Errorf("simulate.per_worker has %d values, but simulate.workers is %d; give one value per worker, or set simulate.per_worker=[], which makes all workers alike", n, m.Workers)
	}
	return nil
}

// mean is the mean of Own over all iterations.
func mean(traces [][]Recorded) time.Duration {
	var sum time.Duration
	n := 0
	for _, t := range traces {
		for _, it := range t {
			sum += it.Own
		}
		n += len(t)
	}
	return sum / time.Duration(max(1, n))
}
