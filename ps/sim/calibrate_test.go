package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/straggler"
)

// record simulates a run and returns the recording that a real run would leave.
func record(t testing.TB, c setting) Recording {
	t.Helper()
	o := c.options(t)
	r := Recording{Options: o, Iterations: make([][]metrics.Iteration, c.workers), Path: "run/iterations.csv"}
	o.Computed = func(w int, iter int64, from, until time.Duration) {
		it := metrics.Iteration{Iter: iter, Start: from, Compute: until - from}
		for i := range o.Config.Faults { // of random slowness the run would not know
			if f := &o.Config.Faults[i]; (f.Worker == w || f.Worker < 0) && f.Slow.Kind == "constant" {
				it.Injected += f.Slow.Sleep
			}
		}
		r.Iterations[w] = append(r.Iterations[w], it)
	}
	res, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	cfg := *o.Config // random slowness stands for that of the machine
	cfg.Faults = slices.DeleteFunc(slices.Clone(cfg.Faults), func(f configs.Fault) bool { return f.Slow.Kind != "constant" })
	r.Options.Config = &cfg
	r.Summary = res.Summary
	r.Summary.Mode = "mpi"
	pull := float64(res.Summary.PerRole["worker"]["pull"].Avg) / float64(res.Summary.Iterations)
	for w := range r.Iterations {
		for i := range r.Iterations[w] {
			r.Iterations[w][i].Pull = time.Duration(pull * 1e9)
		}
	}
	return r
}

// Calibrate recovers the models of a simulated run under every scheme, and the models predict the run of another scheme.
func TestCalibrateFindsWhatARunWasMadeWith(t *testing.T) {
	sleeps := []string{`{worker: "*", slow: {sleep: 10ms}}`, "{worker: 3, slow: {sleep: 30ms}}"}
	c := setting{workers: 4, servers: 2, iterations: 200, bytes: 1_000_000, seed: 1, set: append(noisy(20*time.Millisecond, 0.1, sleeps...),
		"simulate.per_worker=[1, 1.5, 1, 0.5]", "simulate.network={bandwidth: 500MB, latency: 700us}", "simulate.server={fold: 2GB, commit: 2GB}")}
	predict := func(scheme string, set []string) float64 {
		d := c
		d.scheme, d.seed, d.set = scheme, 2, set
		return d.run(t).Duration.Seconds()
	}
	schemes := []string{"bsp", "ssp, staleness: 3", "asp"}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			c.scheme = scheme
			r := record(t, c)
			cal, err := Calibrate(r)
			if err != nil {
				t.Fatal(err)
			}
			m := cal.Models
			if m.Workers != 4 || m.RanksPerHost != 1 || cal.Slow != (straggler.Spec{Kind: "trace", Path: "run/iterations.csv"}) {
				t.Errorf("models %+v, %+v", m, cal.Slow)
			}
			near(t, "compute", float64(m.Compute.Of(1)), 20e6, 0.03)
			for w, want := range []float64{1, 1.5, 1, 0.5} {
				near(t, fmt.Sprintf("multiple of worker %d", w), m.PerWorker[w]*float64(m.Compute.Of(1)), want*20e6, 0.03)
			}
			if cal.Drawn.Slow == nil || cal.Drawn.Slow.Kind != "normal" || cal.Drawn.Gap > 0.05 {
				t.Errorf("drawn %+v", cal.Drawn)
			}
			near(t, "spread", cal.Drawn.Share*20e6*(cal.Drawn.Slow.Factor-1)*cal.Drawn.Slow.Spread, 0.1*20e6, 0.1)
			near(t, "bandwidth", float64(m.Network.Bandwidth), 500e6, 0.05)
			near(t, "latency", float64(m.Network.Latency), 700e3, 0.10)
			near(t, "fold", float64(m.FoldRate), 2e9, 0.02)
			near(t, "the run again", cal.Simulated.Seconds(), cal.Measured.Seconds(), 0.002)
			cal.Draw()
			for _, other := range schemes {
				drawn := append(slices.Clone(c.set), cal.Setting(), "faults=["+strings.Join(append(sleeps, cal.Fault().YAML()), ", ")+"]")
				want, got := predict(other, c.set), predict(other, drawn)
				near(t, "predicted for "+other, got, want, 0.03)
			}
		})
	}
}

// In a run whose servers cost more than the transfers, the rest of the time is latency, which is never negative.
func TestCalibrateStaysWithinItsRange(t *testing.T) {
	r := record(t, setting{workers: 2, servers: 1, scheme: "bsp", iterations: 20, compute: "1ms"})
	cal, err := Calibrate(r)
	if err != nil {
		t.Fatal(err)
	}
	if m := cal.Models; m.Network != (configs.Network{}) || m.FoldRate != 0 || m.CommitRate != 0 || cal.Drawn.Slow != nil || cal.Simulated != cal.Measured {
		t.Errorf("from a run without costs and noise: %+v, %+v, %v for %v", m, cal.Drawn, cal.Simulated, cal.Measured)
	}
}

// One rank that works and serves sends nothing over the network, so its run contains no information about the network.
func TestCalibrateLeavesOutANetworkThatWasNotUsed(t *testing.T) {
	r := record(t, setting{workers: 1, servers: 1, scheme: "bsp", iterations: 50, bytes: 1000, seed: 1, set: []string{"cluster.placement=colocate"}})
	of := r.Iterations[0]
	for i := range of {
		of[i].Start += time.Duration(i) * time.Millisecond // time that a real run takes in addition to computing
		of[i].Pull = time.Microsecond
	}
	cal, err := Calibrate(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := cal.Models.Network; n.Latency != 0 || n.Bandwidth != 0 {
		t.Errorf("network %+v", n)
	}
}

// The windows of all workers end together. Otherwise the last records of the fast workers would count as the pace of all.
func TestTheWindowEndsWithTheFirstWorkersRecords(t *testing.T) {
	r := record(t, setting{workers: 4, servers: 1, scheme: "asp", iterations: 100, set: []string{"faults=[{worker: 0, slow: {factor: 4}}]"}})
	r.Iterations[1] = r.Iterations[1][:20] // only 20 were kept: 200 ms
	n, end := r.window()
	if end != 200*time.Millisecond || n != 3*20+5 {
		t.Errorf("%d iterations until %v, want 65 until 200ms", n, end)
	}
}

func TestFitOfComputeFindsTheKindOfNoise(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	sample := func(f func(base float64) float64) (traces []straggler.Trace) {
		for _, base := range []float64{1e6, 3e6, 2e6} {
			one := straggler.Trace{{Own: time.Second}} // the first is left out
			for range 4000 {
				one = append(one, straggler.Recorded{Own: time.Duration(f(base)), Samples: 1})
			}
			traces = append(traces, one)
		}
		return traces
	}
	for _, c := range []struct {
		kind   string
		spread float64
		f      func(float64) float64
	}{
		{"normal", 0.05, func(b float64) float64 { return b * (1 + 0.05*draw.NormFloat64()) }},
		{"exponential", 0.5, func(b float64) float64 { return b * (1 + 0.5*draw.ExpFloat64()) }},
		{"none", 0, func(b float64) float64 { return b }},
	} {
		var m configs.Simulate
		drawn, batches := fitCompute(&m, [][]straggler.Trace{sample(c.f)})
		base, multiples := m.Compute.Of(1), m.PerWorker
		if batches != 1 || m.FixedPerWorker != nil || m.Compute.Fixed != 0 {
			t.Errorf("%s: of one batch %+v, %d batches", c.kind, m, batches)
		}
		kind, spread := "none", 0.0 // the spread as a share of the base
		if s := drawn.Slow; s != nil {
			kind, spread = s.Kind, s.Factor-1
			if kind == "normal" {
				spread *= s.Spread * drawn.Share
			}
		}
		if kind != c.kind || drawn.Gap > 0.02 {
			t.Errorf("%s: fitted %+v, %+v", c.kind, drawn, drawn.Slow)
		}
		near(t, c.kind+": base", float64(base), 2e6, 0.01)
		for w, want := range []float64{0.5, 1.5, 1} {
			near(t, fmt.Sprintf("%s: worker %d", c.kind, w), multiples[w], want, 0.01)
		}
		near(t, c.kind+": spread", spread, c.spread, 0.05)
	}
	if drawn, _ := fitCompute(new(configs.Simulate), [][]straggler.Trace{sample(func(b float64) float64 { return b * float64(1+9*draw.IntN(2)) })}); drawn.Gap < 0.2 {
		t.Errorf("two kinds of iterations are %g from a fitted distribution; the gap must show that they do not fit", drawn.Gap)
	}
}

// The smallest of few times lies well above the shift of their distribution. The fitted shift does not.
func TestFitOfComputeFromFewIterations(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	traces := make([]straggler.Trace, 500)
	for w := range traces {
		for range 11 {
			traces[w] = append(traces[w], straggler.Recorded{Own: time.Duration(1e6 * (1 + 0.5*draw.ExpFloat64())), Samples: 1})
		}
	}
	var m configs.Simulate
	drawn, _ := fitCompute(&m, [][]straggler.Trace{traces})
	base := m.Compute.Of(1)
	if drawn.Slow == nil || drawn.Slow.Kind != "exponential" {
		t.Errorf("fitted %+v", drawn)
	}
	near(t, "base", float64(base), 1e6, 0.015)
}

// replaying is slowness by the trace t.
const replaying = `{worker: "*", slow: {kind: trace, path: t}}`

// Each worker replays its own times in order, then again from the second iteration on, because in the first one caches were cold.
// The faults are added.
func TestATraceIsReplayedExactly(t *testing.T) {
	c := setting{workers: 2, servers: 1, scheme: "asp", iterations: 20, set: []string{
		"faults=[" + replaying + ", {worker: 1, slow: {sleep: 5ms, from: 3}}]"}}
	o := c.options(t)
	o.Traces = configs.Traces{"t": metrics.Traces([][]metrics.Iteration{
		{{Compute: 10e6 + 1}, {Compute: 12e6, Push: 2}, {Compute: 60e6, Injected: 40e6}},
		{{Compute: 7e6}},
	})}
	var got [2][]time.Duration
	o.Computed = func(w int, _ int64, from, until time.Duration) { got[w] = append(got[w], until-from) }
	if _, err := Run(o); err != nil {
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
	c := setting{workers: 2, servers: 1, scheme: "asp", iterations: 20, set: []string{"faults=[" + replaying + ", {worker: 1, slow: {factor: 5}}]"}}
	o := c.options(t)
	o.Traces = configs.Traces{"t": metrics.Traces([][]metrics.Iteration{
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
	if _, err := Run(o); err != nil || seen < 20 {
		t.Fatalf("%d iterations, %v", seen, err)
	}
}

func TestEachWorkersMultipleOfTheBase(t *testing.T) {
	r := setting{workers: 3, servers: 1, scheme: "asp", iterations: 100, set: []string{"simulate.per_worker=[1, 0.5, 4]"}}.run(t)
	for w, want := range []float64{0.010, 0.005, 0.040} {
		s := r.Summary.PerWorker[w]
		near(t, fmt.Sprintf("worker %d, seconds per iteration", w), float64(s.ComputeS)/float64(s.Iterations), want, 1e-9)
	}
	if !strings.Contains(r.Summary.CostModel[0], "10ms per iteration, times 0.5 to 4 by worker") {
		t.Errorf("cost model: %s", r.Summary.CostModel[0])
	}
}

func TestModelsThatDoNotFitAreRefused(t *testing.T) {
	c := setting{workers: 2, servers: 1, scheme: "bsp", iterations: 10}
	for _, q := range []struct {
		set    string
		traces []straggler.Trace
		want   string
	}{
		{"simulate.per_worker=[1, 2, 3]", nil, "simulate.per_worker has 3 values, but simulate.workers is 2"},
		{"faults=[" + replaying + "]", nil, "t has the times of 0 workers, but 2 compute"},
		{"faults=[" + replaying + "]", []straggler.Trace{{{Own: 1}}, {}}, "t has no iteration of worker 1"},
	} {
		c.set = []string{q.set}
		o := c.options(t)
		o.Traces = configs.Traces{"t": q.traces}
		if _, err := Run(o); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %v, want %q", q.set, err, q.want)
		}
	}
	good := record(t, setting{workers: 2, servers: 1, scheme: "bsp", iterations: 10})
	for want, spoil := range map[string]func(r *Recording, s *metrics.Summary){
		"it is a simulated run":                                   func(_ *Recording, s *metrics.Summary) { s.Mode = "simulated" },
		"has the iterations of 2 workers, but the run had 3":      func(_ *Recording, s *metrics.Summary) { s.Workers = 3 },
		"has 4 iterations of worker 1, too few to fit a model to": func(r *Recording, _ *metrics.Summary) { r.Iterations[1] = r.Iterations[1][:4] },
	} {
		r, s := good, *good.Summary
		r.Summary, r.Iterations = &s, slices.Clone(good.Iterations)
		spoil(&r, &s)
		if _, err := Calibrate(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The text is valid YAML for a configuration file, and means the same as the setting.
func TestCalibratedModelsReadBack(t *testing.T) {
	cal, err := Calibrate(record(t, setting{workers: 3, servers: 2, scheme: "asp", iterations: 40, bytes: 4000,
		set: []string{"faults=[" + exponential(0.3) + "]", "simulate.network={bandwidth: 10MB, latency: 150us}", "simulate.server={fold: 1GB, commit: 1GB}"}}))
	if err != nil {
		t.Fatal(err)
	}
	const rest = "name: x\ndata: {set: generated}\nmodel: {name: softmax}\ntrain: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 1}}\n"
	for range 2 { // with the trace, then with the fitted noise
		pasted, _, ds := configs.Parse("pasted", []byte(rest+cal.Text([]configs.Fault{*cal.Fault()})), configs.Options{})
		if pasted == nil {
			t.Fatalf("%v in\n%s", ds, cal.Text([]configs.Fault{*cal.Fault()}))
		}
		set, _, ds := configs.Parse("set", []byte(rest), configs.Options{Set: []string{cal.Setting(), "faults[0]=" + cal.Fault().YAML()}})
		if set == nil {
			t.Fatal(ds)
		}
		if len(set.Faults) != 1 || !slices.Equal(pasted.Faults, set.Faults) || set.Faults[0].Slow.Kind != cal.Slow.Kind {
			t.Errorf("pasted %+v, set %+v, want %+v", pasted.Faults, set.Faults, cal.Slow)
		}
		got, want := fmt.Sprintf("%+v", pasted.Simulate), fmt.Sprintf("%+v", cal.Models)
		if got != want || fmt.Sprintf("%+v", set.Simulate) != want {
			t.Errorf("pasted %s, want %s", got, want)
		}
		if !strings.HasPrefix(cal.Text(nil), "# simulated: ") {
			t.Errorf("it does not say that it is simulated:\n%s", cal.Text(nil))
		}
		cal.Draw()
	}
}

func TestSizesAreWholeNumbersOfTheirUnit(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1: "1B", 1234: "1234B", 12_000: "12KB", 2_070_000_000: "2070MB", 5_000_000_000: "5GB"} {
		if got := decimalText(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
