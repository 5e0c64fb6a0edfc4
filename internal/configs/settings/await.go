package settings

import (
	"fmt"
	"slices"

	"fluentps/ps/scheme"
)

// Awaits says whether the schemes of the rule wait for stragglers.
func (r *Rule) Awaits() bool { return r.Until.Await.IsSet() }

// Awaits lists what the schemes of the rules that wait for stragglers wait for, in turn; all these rules have the same list. nil: none
// waits.
func (c *Config) Awaits() (awaits []scheme.Await) {
	i := slices.IndexFunc(c.Sync, func(r Rule) bool { return r.Awaits() })
	if i < 0 {
		return nil
	}
	for _, ph := range c.Sync[i].Phases() {
		awaits = append(awaits, ph.Until.Await)
	}
	return awaits
}

// SkipsAhead says per turn whether workers skip to the iteration that announces the end of the turn. They do if no scheme of the run bounds
// their lead then: they may be far apart, and no scheme promises how old the parameters are that they read.
func (c *Config) SkipsAhead() (skips []bool) {
	for k := range c.Awaits() {
		skips = append(skips, !slices.ContainsFunc(c.Sync, func(r Rule) bool {
			phases := r.Phases()
			if r.Awaits() {
				phases = phases[k : k+1]
			}
			return slices.ContainsFunc(phases, func(ph Phase) bool {
				e, _ := scheme.All.Lookup(ph.Scheme)
				_, bounded := e.LeadMax(ph.Params)
				return bounded
			})
		}))
	}
	return skips
}

// CheckAwaits fails if schemes wait for stragglers among so few workers that a median says nothing.
func (c *Config) CheckAwaits(workers int) error {
	if len(c.Awaits()) == 0 || workers >= scheme.AwaitWorkersMin {
		return nil
	}
	return fmt.Errorf("sync: until: {straggler: %s} compares a worker with the median of all workers, which needs at "+
		"least %d of them, and the run has %d; take more workers, or let the scheme end at an iteration or an epoch",
		c.Awaits()[0].Straggler, scheme.AwaitWorkersMin, workers)
}
