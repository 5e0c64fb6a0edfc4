package sim

import (
	"fmt"
	"time"

	"fluentps/ps/metrics"
)

// Recorded is how long a worker of a real run was busy with an iteration by itself, without the slowness that was injected
// into it, which the faults of the simulation add again.
type Recorded struct {
	Own  time.Duration
	Push time.Duration // of that, handing gradients to the transport, which no injected factor makes longer
}

// Traces are the computing times of a recorded run for Options.Traces.
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

// ownTimes are the times of traces.
func ownTimes(traces [][]Recorded) [][]time.Duration {
	all := make([][]time.Duration, len(traces))
	for w, of := range traces {
		for _, it := range of {
			all[w] = append(all[w], it.Own)
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
