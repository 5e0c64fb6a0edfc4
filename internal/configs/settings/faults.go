package settings

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics/timings"
)

// Fault is a straggler to order, for experiments. Exactly one of Slow and Pause is set.
type Fault struct {
	Worker int            `yaml:"worker,required" unit:"worker" doc:"index of the worker from 0; \"*\" for all"`
	Slow   straggler.Spec `yaml:"slow"`
	Pause  FaultPause     `yaml:"pause"`
}

// FaultPause stops the computing of a worker once. Its messages travel on.
type FaultPause struct {
	At  time.Duration `yaml:"at,omitempty" min:"0" doc:"training time at which the worker pauses"`
	For time.Duration `yaml:"for,omitempty" above:"0" doc:"how long it computes nothing"`
}

// NewFault returns a fault with defaults only.
func NewFault() Fault { return Fault{Slow: straggler.Defaults()} }

// Paused reports whether a fault is a pause.
func (f *Fault) Paused() bool { return f.Pause.For > 0 }

// of reports whether a fault is one of a worker.
func (f *Fault) of(worker int) bool { return f.Worker == worker || f.Worker < 0 }

// Traces are the recorded iterations that faults replay: for each path those of every worker.
type Traces map[string][]straggler.Trace

// ReadTraces reads the files that faults of kind trace name. It fails if a file does not have the iterations of that many workers.
func (c *Config) ReadTraces(computing int) (Traces, error) {
	all := Traces{}
	for i, f := range c.Faults {
		path := f.Slow.Path
		if f.Slow.Kind != "trace" || f.Paused() || all[path] != nil {
			continue
		}
		iterations, err := timings.Read(path)
		if err != nil {
			return nil, fmt.Errorf("faults[%d].slow.path: %w", i, err)
		}
		all[path] = timings.Traces(iterations)
	}
	return all, c.CheckTraces(all, computing)
}

// CheckTraces fails if traces lack iterations of one of that many workers.
func (c *Config) CheckTraces(all Traces, computing int) error {
	for i, f := range c.Faults {
		if f.Slow.Kind != "trace" || f.Paused() {
			continue
		}
		of := all[f.Slow.Path]
		if len(of) != computing {
			return fmt.Errorf("faults[%d].slow.path: %s has the times of %d workers, but %d compute; take %d, or another "+
				"kind of slowness (simulate --calibrate: --fitted)",
				i, f.Slow.Path, len(of), computing, len(of))
		}
		for w, t := range of {
			if len(t) == 0 && f.of(w) {
				return fmt.Errorf("faults[%d].slow.path: %s has no iteration of worker %d", i, f.Slow.Path, w)
			}
		}
	}
	return nil
}

// CheckFaults fails for a fault of a worker that is not one of those that compute.
func (c *Config) CheckFaults(computing int) error {
	for i, f := range c.Faults {
		if f.Worker >= computing {
			return fmt.Errorf("faults[%d].worker is %d, but the workers are 0 to %d", i, f.Worker, computing-1)
		}
	}
	return nil
}

// Stragglers returns the slowness of a worker, of so many that compute, and its pauses in order of their times. rows is the size of the
// training set. The configuration, and the traces for it, have been checked.
func (c *Config) Stragglers(worker, computing, rows int, traces Traces) (slow straggler.Worker, pauses []FaultPause, err error) {
	for place, f := range c.Faults {
		if !f.of(worker) {
			continue
		}
		if f.Paused() {
			pauses = append(pauses, f.Pause)
			continue
		}
		e := straggler.Env{Seed: c.Seed, Place: place, Worker: worker, PerEpoch: c.EpochIterations(computing, rows)}
		if f.Slow.Kind == "trace" {
			e.Trace = traces[f.Slow.Path][worker]
		}
		if err := slow.Add(f.Slow, e); err != nil {
			return slow, nil, err
		}
	}
	slices.SortStableFunc(pauses, func(a, b FaultPause) int { return int(a.At - b.At) })
	return slow, pauses, nil
}
