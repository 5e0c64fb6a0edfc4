package check

import (
	"errors"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
)

// Each law of copies is broken on purpose.
func TestCheckersDetectEachBrokenLawOfCopies(t *testing.T) {
	for law, spoil := range map[string]func(s *sim.Simulation, c *checker){
		"the gate: worker":       func(_ *sim.Simulation, c *checker) { c.shards[0].now.bound = 0 },
		"which does not want it": func(_ *sim.Simulation, c *checker) { c.shards[0].of[0].gone = true },
		"which has not taken":    func(_ *sim.Simulation, c *checker) { c.shards[0].of[0].publishing = true },
		"which has v=7":          func(_ *sim.Simulation, c *checker) { c.shards[0].of[1].sent = 7 },
		"that has not landed":    func(_ *sim.Simulation, c *checker) { c.adopted(0, 0) },
		"that was not published": func(_ *sim.Simulation, c *checker) { c.taken(wire.Header{Kind: wire.Taken}) },
		"core: worker 1":         func(s *sim.Simulation, _ *checker) { s.Worker(1).Step(core.Input{Kind: core.PieceLanded}, nil) },
	} {
		o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "essp, staleness: 2", Iterations: 30,
			Set: []string{"simulate.network={bandwidth: 1MB, latency: 1ms}"}}.Options(t)
		s, c := checked(t, o)
		for range 12 { // both workers compute iteration 0
			s.Next()
		}
		err := func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = errors.New(p.(string))
				}
			}()
			spoil(s, c)
			_, err = s.Run()
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), law) {
			t.Errorf("%s: got %v", law, err)
		}
	}
}
