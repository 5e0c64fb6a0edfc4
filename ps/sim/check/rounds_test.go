package check

import (
	"strings"
	"testing"

	"fluentps/ps/sim/simtest"
)

// The checker detects a worker that pulls before all have pushed: it has forgotten the pushes of iteration 0.
func TestTheCheckerSeesAPullBeforeTheBarrier(t *testing.T) {
	s, c := checked(t, simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 30,
		Set: []string{"baseline=pslite", "simulate.per_worker=[1, 3]"}}.Options(t))
	for c.shards[0].versions == 0 {
		s.Next()
	}
	c.shards[0].low, c.shards[0].closed = 0, 0
	if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), "rounds: worker 0 pulls shard 0 for iteration 1") {
		t.Errorf("found %v", err)
	}
}
