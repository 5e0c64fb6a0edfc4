package sim_test

import (
	"strings"
	"testing"

	"fluentps/internal/sim/simtest"
)

// The modelled norms change decisions. They are part of the cost model only for schemes that use norms.
func TestModelledNorms(t *testing.T) {
	delayed := func(scheme, norm string) (int64, bool) {
		r := run(t, simtest.Setting{Workers: 4, Servers: 1, Scheme: scheme, Iterations: 200, Bytes: 400, Set: []string{
			"faults=[{worker: 3, slow: {factor: 4}}]", "simulate.push_norm=" + norm}})
		return r.Delayed, strings.Contains(strings.Join(r.Summary.CostModel, "\n"),
			"norms    each element of a pushed mean is "+norm+", each parameter 1")
	}
	for _, c := range []struct {
		scheme, norm  string
		delays, names bool
	}{
		{"vap, v0: 0", "0", false, true},
		{"vap, v0: 0", "0.001", true, true},
		{"vap, v0: 1000", "2", false, true},
		{"vap, v0: 1000", "2e+09", true, true},
		{"pssp, mode: dynamic, significance: true", "0", false, true},
		{"pssp, mode: dynamic, significance: true", "0.5", true, true},
		{"pssp, mode: dynamic", "0", true, false},
		{"ssp", "0", true, false},
	} {
		n, names := delayed(c.scheme, c.norm)
		if n > 0 != c.delays || names != c.names {
			t.Errorf("%s with norms of %s: %d delayed pulls, cost model names the norms: %v", c.scheme, c.norm, n, names)
		}
	}
	// A push as large as the parameters is fully significant: alpha alone decides.
	full, _ := delayed("pssp, mode: dynamic, significance: true", "1")
	if plain, _ := delayed("pssp, mode: dynamic", "1"); full != plain {
		t.Errorf("%d delayed pulls where all pushes are significant, %d without significance", full, plain)
	}
}

// One straggler at 4 times the compute time, and a bound of 0: a fast worker may push once while the straggler computes, and its
// next push waits for that of the straggler. So all others are about twice as fast as the straggler.
func TestVAPWithoutRoomGoesAtTheStragglersPace(t *testing.T) {
	r := run(t, simtest.Setting{Workers: 8, Servers: 1, Scheme: "vap, v0: 0", Iterations: 1000,
		Set: []string{"faults=[{worker: 3, slow: {factor: 4}}]"}})
	perS := float64(r.Summary.Samples) / r.Duration.Seconds()
	simtest.Near(t, "pushes per second", perS, (7*2+1)/0.04, 0.03)
}
