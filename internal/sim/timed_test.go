package sim_test

import (
	"math"
	"testing"
	"time"

	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// Steps take the sum of the draws that an iteration without steps takes, so a policy that leaves nothing out takes as
// long as none. With a tau the samples are those that begin in time, and the run is shorter; a tau that the workers
// choose makes samples faster.
func TestSlownessOfStepsIsThatOfIterations(t *testing.T) {
	run := func(work string, updates string) (time.Duration, int64) {
		o := simtest.Setting{Workers: 8, Servers: 1, Scheme: "bsp", Iterations: 1000,
			Set: []string{"train.batch_per_worker=16", "train.stop={updates: " + updates + "}",
				"faults=[{worker: '*', slow: {kind: lognormal, sleep: 16ms, spread: 1, draws: 16}}, {worker: 2, slow: {kind: " +
					"exponential, factor: 2, draws: 4}}]", "work=" + work}}.Options(t)
		r, err := check.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Duration, r.Summary.Samples
	}
	fixed, samples := run("{policy: fixed}", "200")
	for _, work := range []string{"{policy: anytime, time: 1h}", "{policy: dropcompute, time: 1h, micro: 3}",
		"{policy: dropcompute, profile: 1000, micro: 2}"} {
		took, n := run(work, "200")
		if n != samples || math.Abs(float64(took-fixed)) > 1e-6*float64(fixed) {
			t.Errorf("%s: %d samples in %v, without steps %d in %v", work, n, took, samples, fixed)
		}
	}
	took, n := run("{policy: dropcompute, time: 20ms}", "200")
	if n >= samples || took >= fixed {
		t.Errorf("with a tau: %d samples in %v, without %d in %v", n, took, samples, fixed)
	}
	before, some := run("{policy: dropcompute}", "30")
	after, all := run("{policy: dropcompute}", "200")
	if rate, whole := float64(all-some)/float64(after-before), float64(samples)/float64(fixed); rate < 1.03*whole {
		t.Errorf("with the chosen tau %.4g samples per second, without a tau %.4g", rate*1e9, whole*1e9)
	}
}
