// Package check checks simulated runs against the laws (LAWS.md). It hears what the engine (internal/sim) does, and counts it
// independently of the nodes. The first law that is broken ends the run.
package check

import "fluentps/internal/sim"

// Run simulates a run under all checks.
func Run(o sim.Options) (*sim.Result, error) {
	var c *checker // nil in baseline allreduce, which has no nodes
	o.Observer = func(s *sim.Simulation) (sim.Observer, error) {
		seen, err := Observe(s)
		c, _ = seen.(*checker)
		return seen, err
	}
	r, err := sim.Run(o)
	if err == nil && c != nil {
		for i := range c.shards {
			r.Lags, r.Ages = append(r.Lags, c.shards[i].lag), append(r.Ages, c.shards[i].age)
		}
	}
	return r, err
}

// Observe makes the observer of a run: set sim.Options.Observer to it.
func Observe(s *sim.Simulation) (sim.Observer, error) { return newChecker(s) }
