package check

import (
	"strings"
	"testing"

	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
)

// Each law is broken on purpose. The run must fail with an error that names the law and the command that repeats the run. Laws of the
// engine are broken in internal/sim.
func TestCheckersDetectEachBrokenLaw(t *testing.T) {
	for _, c := range []struct {
		law   string
		spoil func(s *sim.Simulation, c *checker)
	}{
		{"the gate", func(_ *sim.Simulation, c *checker) { c.shards[0].now.bound = 1 }},
		{"the change", func(_ *sim.Simulation, c *checker) { c.shards[0].now.until, c.shards[0].then = 4, []limit{{}} }},
		{"exactly once: shard 0 folds", func(_ *sim.Simulation, c *checker) { c.shards[0].of[1].folded = 5 }},
		{"exactly once: shard 0 answers", func(s *sim.Simulation, c *checker) { s.Next(); c.shards[0].of[0].openPull = -1 }},
		{"pushes landed", func(_ *sim.Simulation, c *checker) { c.shards[0].landed++ }},
		{"immutable versions", func(_ *sim.Simulation, c *checker) { c.shards[0].cur = 2 }},
	} {
		t.Run(c.law, func(t *testing.T) {
			s, of := checked(t, simtest.Setting{Workers: 2, Servers: 1, Scheme: "ssp, staleness: 2", Iterations: 30,
				Set: []string{"faults=[{worker: 0, slow: {factor: 3}}]", "simulate.network={bandwidth: 1MB, latency: 1ms}"}}.Options(t))
			c.spoil(s, of)
			if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), c.law) ||
				!strings.HasSuffix(err.Error(), "to reproduce it: go test") {
				t.Errorf("got %v", err)
			}
		})
	}
}
