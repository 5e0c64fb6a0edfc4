package sim

import (
	"strings"
	"testing"

	"fluentps/ps/core"
)

// Each law is broken on purpose. The run must fail with an error that names the law and the command that repeats the run.
func TestCheckersDetectEachBrokenLaw(t *testing.T) {
	lost := func(s *simulation, kind eventKind) { // the first event of a kind is lost
		for {
			if e, from := s.q.first(); e.kind == kind {
				s.q.pop(from)
				return
			}
			s.next()
		}
	}
	for _, c := range []struct {
		law   string
		spoil func(s *simulation)
	}{
		{"liveness", func(s *simulation) { lost(s, evControl) }},
		{"liveness", func(s *simulation) { lost(s, evComputed) }},
		{"the gate", func(s *simulation) { s.check.shards[0].bound = 1 }},
		{"the change", func(s *simulation) { s.check.shards[0].until, s.check.shards[0].then = 4, []limit{{}} }},
		{"exactly once: shard 0 folds", func(s *simulation) { s.check.shards[0].of[1].folded = 5 }},
		{"exactly once: shard 0 answers", func(s *simulation) { s.next(); s.check.shards[0].of[0].openPull = -1 }},
		{"pushes landed", func(s *simulation) { s.check.shards[0].landed++ }},
		{"immutable versions", func(s *simulation) { s.check.shards[0].cur = 2 }},
		{"conservation", func(s *simulation) { s.check.sent += 4 }},
		{"core: server 0", func(s *simulation) { // a duplicate pull is a bug of the driver, which the node detects
			s.next()
			e, _ := s.q.first()
			s.serve(event{kind: evControl, node: 2, arg: s.messages.put(s.messages.all[e.arg])})
			s.stepServer(&s.servers[0], 2, core.Input{Kind: core.ReplySent})
		}},
	} {
		t.Run(c.law, func(t *testing.T) {
			o := setting{workers: 2, servers: 1, scheme: "ssp, staleness: 2", iterations: 30,
				set: []string{"faults=[{worker: 0, slow: {factor: 3}}]", "simulate.network={bandwidth: 1MB, latency: 1ms}"}}.options(t)
			s, err := newSimulation(o)
			if err != nil {
				t.Fatal(err)
			}
			s.begin()
			err = func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = s.failure(p.(string))
					}
				}()
				c.spoil(s)
				_, err = s.run()
				return err
			}()
			if err == nil || !strings.Contains(err.Error(), c.law) || !strings.HasSuffix(err.Error(), "to reproduce it: go test") {
				t.Errorf("got %v", err)
			}
		})
	}
}
