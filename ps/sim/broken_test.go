package sim_test

import (
	"strings"
	"testing"

	"fluentps/ps/sim"
	"fluentps/ps/sim/check"
	"fluentps/ps/sim/simtest"
)

// What the engine relies on is broken on purpose. The run must fail with an error that says so and names the command that repeats the
// run.
func TestABrokenRunFails(t *testing.T) {
	for _, c := range []struct {
		law   string
		spoil func(s *sim.Simulation)
	}{
		{"liveness", (*sim.Simulation).LoseMessage},
		{"liveness", (*sim.Simulation).LoseComputed},
		{"conservation", func(s *sim.Simulation) { s.LoseBytes(4) }},
		{"core: server 0", (*sim.Simulation).RepeatMessage}, // a duplicate pull is a bug of the driver, which the node detects
	} {
		t.Run(c.law, func(t *testing.T) {
			o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "ssp, staleness: 2", Iterations: 30,
				Set: []string{"faults=[{worker: 0, slow: {factor: 3}}]", "simulate.network={bandwidth: 1MB, latency: 1ms}"}}.Options(t)
			o.Observer = check.Observe
			s, err := sim.New(o)
			if err != nil {
				t.Fatal(err)
			}
			err = func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = s.Failure(p.(string))
					}
				}()
				c.spoil(s)
				_, err = s.Run()
				return err
			}()
			if err == nil || !strings.Contains(err.Error(), c.law) || !strings.HasSuffix(err.Error(), "to reproduce it: go test") {
				t.Errorf("got %v", err)
			}
		})
	}
}
