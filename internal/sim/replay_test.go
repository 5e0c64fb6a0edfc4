package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// replaying is slowness by the trace t.
const replaying = `{worker: "*", slow: {kind: trace, path: t}}`

// Each worker replays its own times in order, then again from the second iteration on, because in the first one caches were cold.
// The faults are added.
func TestATraceIsReplayedExactly(t *testing.T) {
	c := simtest.Setting{Workers: 2, Servers: 1, Scheme: "asp", Iterations: 20, Set: []string{
		"faults=[" + replaying + ", {worker: 1, slow: {sleep: 5ms, from: 3}}]"}}
	o := c.Options(t)
	o.Traces = configs.Traces{"t": timings.Traces([][]timings.Iteration{
		{{Compute: 10e6 + 1}, {Compute: 12e6, Push: 2}, {Compute: 60e6, Injected: 40e6}},
		{{Compute: 7e6}},
	})}
	var got [2][]time.Duration
	o.Computed = func(w int, _ int64, from, until time.Duration) { got[w] = append(got[w], until-from) }
	if _, err := check.Run(o); err != nil {
		t.Fatal(err)
	}
	for w := range got {
		if len(got[w]) < 10 {
			t.Fatalf("worker %d computed %d iterations", w, len(got[w]))
		}
		for i, d := range got[w] {
			k := i
			if i > 0 {
				k = 1 + (i-1)%2
			}
			want := []time.Duration{10e6 + 1, 12e6 + 2, 20e6}[k]
			if w == 1 {
				want = 7e6
				if i >= 3 {
					want = 12e6
				}
			}
			if d != want {
				t.Errorf("worker %d, iteration %d: %v, want %v", w, i, d, want)
			}
		}
	}
}

// Injected sleep is not computing, even if it took longer than it should have, and a factor lengthens only computing. So the
// slowness of a run is neither counted twice nor multiplied.
func TestARecordedSlownessIsReplayedOnce(t *testing.T) {
	const us = time.Microsecond
	c := simtest.Setting{Workers: 2, Servers: 1, Scheme: "asp", Iterations: 20,
		Set: []string{"faults=[" + replaying + ", {worker: 1, slow: {factor: 5}}]"}}
	o := c.Options(t)
	o.Traces = configs.Traces{"t": timings.Traces([][]timings.Iteration{
		{{Compute: 150 * us, Push: 50 * us}},
		{{Compute: (150 + 670) * us, Injected: 670 * us, Push: 50 * us}}, // the configuration says 600
	})}
	want := []time.Duration{200 * us, 200*us + 4*150*us}
	seen := 0
	o.Computed = func(w int, iter int64, from, until time.Duration) {
		if seen++; until-from != want[w] {
			t.Errorf("worker %d, iteration %d: %v, want %v", w, iter, until-from, want[w])
		}
	}
	if _, err := check.Run(o); err != nil || seen < 20 {
		t.Fatalf("%d iterations, %v", seen, err)
	}
}

func TestEachWorkersMultipleOfTheBase(t *testing.T) {
	r := run(t, simtest.Setting{Workers: 3, Servers: 1, Scheme: "asp", Iterations: 100, Set: []string{"simulate.per_worker=[1, 0.5, 4]"}})
	for w, want := range []float64{0.010, 0.005, 0.040} {
		s := r.Summary.PerWorker[w]
		simtest.Near(t, fmt.Sprintf("worker %d, seconds per iteration", w), float64(s.ComputeS)/float64(s.Iterations), want, 1e-9)
	}
	if !strings.Contains(r.Summary.CostModel[0], "10ms per iteration, times 0.5 to 4 by worker") {
		t.Errorf("cost model: %s", r.Summary.CostModel[0])
	}
}

// A trace is stretched where the batch is another one than that of the recorded iteration.
func TestATraceOfAnotherBatchIsStretched(t *testing.T) {
	c := simtest.Setting{Workers: 1, Servers: 1, Scheme: "bsp", Iterations: 3,
		Set: []string{"faults=[" + replaying + "]", "simulate.compute={fixed: 10ms, per_sample: 1ms}",
			"train.batch_per_worker=30", "train.stop.samples=90"}}
	o := c.Options(t)
	o.Traces = configs.Traces{"t": {{{Own: 20 * time.Millisecond, Samples: 10},
		{Own: 30 * time.Millisecond, Samples: 30}, {Own: 8 * time.Millisecond}}}}
	var got []time.Duration
	o.Computed = func(_ int, _ int64, from, until time.Duration) { got = append(got, until-from) }
	if _, err := check.Run(o); err != nil ||
		!slices.Equal(got, []time.Duration{40 * time.Millisecond, 30 * time.Millisecond, 8 * time.Millisecond}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTimesThatDoNotFitTheWorkersAreRefused(t *testing.T) {
	c := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 10}
	for _, q := range []struct {
		set    string
		traces []straggler.Trace
		want   string
	}{
		{"simulate.per_worker=[1, 2, 3]", nil, "simulate.per_worker has 3 values, but simulate.workers is 2"},
		{"faults=[" + replaying + "]", nil, "t has the times of 0 workers, but 2 compute"},
		{"faults=[" + replaying + "]", []straggler.Trace{{{Own: 1}}, {}}, "t has no iteration of worker 1"},
	} {
		c.Set = []string{q.set}
		o := c.Options(t)
		o.Traces = configs.Traces{"t": q.traces}
		if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %v, want %q", q.set, err, q.want)
		}
	}
}
