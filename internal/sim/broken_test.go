package sim_test

import (
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/build"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
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

// The checks see a worker that pulls before all have pushed.
func TestAPullBeforeTheBarrierIsSeen(t *testing.T) {
	o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 30,
		Set: []string{"baseline=pslite", "simulate.per_worker=[1, 3]"}}.Options(t)
	o.Observer = check.Observe
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if !s.ReleaseEarly() || !strings.Contains(s.Broken(), "rounds: worker 0 pulls shard 0 for iteration 1") {
		t.Errorf("found %q", s.Broken())
	}
}

// They see an engine that computes other samples of a task than the policy has assigned.
func TestOtherSamplesThanAssignedAreSeen(t *testing.T) {
	assign := func(t core.Task) core.Order { return core.Order{Kind: core.Assign, Task: t} }
	give := func(ev core.WorkEvent, out []core.Order) []core.Order { // samples 5 to 9 are worker 1's
		if ev.Kind != core.Starting {
			return out
		}
		own := ev.Task
		own.Parts, own.To, own.Grain = 2, 5, 2
		return append(out, assign(own), core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: ev.Task.Iter, Samples: 5}})
	}
	take := func(ev core.WorkEvent, out []core.Order) []core.Order {
		if ev.Kind == core.Came {
			out = append(out, assign(core.Task{Owner: 0, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: int32(ev.Msg.Samples)}))
		}
		return out
	}
	for law, spoil := range map[string]func(s *sim.Simulation){
		"samples of":     func(s *sim.Simulation) { s.EndTaskAt(3, 0) }, // some are left out
		"begins samples": func(s *sim.Simulation) { s.EndTaskAt(8, 8) }, // too many
	} {
		t.Run(law, func(t *testing.T) {
			o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 30,
				Set: []string{"train.batch_per_worker=10", "simulate.network={bandwidth: 1MB, latency: 1ms}"}}.Options(t)
			o.Axes = build.Axes{Work: func(worker int) core.Work { return []simtest.Orders{give, take}[worker] }, Parts: 2}
			o.Observer = check.Observe
			s, err := sim.New(o)
			if err != nil {
				t.Fatal(err)
			}
			spoil(s)
			if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), law) {
				t.Errorf("got %v, want %q", err, law)
			}
		})
	}
}
