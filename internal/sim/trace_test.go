package sim_test

import (
	"testing"
	"time"

	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// The rows of iterations are what Computed tells, with the slowness apart, and their times fill the run of a worker.
func TestIterationsOfASimulatedRun(t *testing.T) {
	for _, baseline := range []string{"none", "allreduce"} {
		o := simtest.Setting{Workers: 3, Servers: 1, Scheme: "bsp", Iterations: 20, Bytes: 40_000, Set: []string{"baseline=" + baseline,
			"simulate.network={bandwidth: 10MB, latency: 1ms}",
			`faults=[{worker: 1, slow: {sleep: 5ms, until: 10}}, {worker: 2, slow: {kind: fluentps, sleep: 3ms, spread: 0.1}}, {worker: 2, pause: {at: 105ms, for: 50ms}}]`}}.Options(t)
		o.Iterations = make([]timings.Recorder, 3)
		for w := range o.Iterations {
			o.Iterations[w].Max = 100
		}
		computed := 0
		o.Computed = func(int, int64, time.Duration, time.Duration) { computed++ }
		r, err := check.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for w, all := range simtest.ReadIterations(t, o.Iterations) {
			rows += len(all)
			paused, slept, next := 0, 0, all[0].Start
			for _, it := range all {
				switch {
				case it.Injected > 20*time.Millisecond: // a pause that begins while the worker waits costs what is left of it
					paused++
				case it.Injected > 0:
					slept++
				}
				if own := it.Compute - it.Injected; own != 10*time.Millisecond {
					t.Errorf("%s: worker %d, iteration %d computes for %v by itself", baseline, w, it.Iter, own)
				}
				if d := it.Start - next; d < 0 || d > time.Millisecond && baseline == "none" {
					t.Errorf("%s: worker %d, iteration %d starts %v after the end of the one before and its waits", baseline, w, it.Iter, d)
				}
				next = it.End() + it.Blocked + it.Pull
			}
			if want := []int{0, 10, 18}[w]; paused != w/2 || slept != want {
				t.Errorf("%s: worker %d paused %d times and slept in %d iterations, want %d and %d", baseline, w, paused, slept, w/2, want)
			}
		}
		if rows != computed || int64(rows) != 3*r.Summary.Iterations {
			t.Errorf("%s: %d rows of %d iterations", baseline, rows, computed)
		}
	}
}
