package calibrate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// record simulates a run and returns the recording that a real run would leave.
func record(t testing.TB, c simtest.Setting) calibrate.Recording {
	t.Helper()
	o := c.Options(t)
	r := calibrate.Recording{Options: o, Iterations: make([][]timings.Iteration, c.Workers), Path: "run/iterations.csv"}
	o.Computed = func(w int, iter int64, from, until time.Duration) {
		it := timings.Iteration{Iter: iter, Start: from, Compute: until - from}
		for i := range o.Config.Faults { // of random slowness the run would not know
			if f := &o.Config.Faults[i]; (f.Worker == w || f.Worker < 0) && f.Slow.Kind == "constant" {
				it.Injected += f.Slow.Sleep
			}
		}
		r.Iterations[w] = append(r.Iterations[w], it)
	}
	res, err := check.Run(o)
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
	c := simtest.Setting{Workers: 4, Servers: 2, Iterations: 200, Bytes: 1_000_000, Seed: 1,
		Set: append(simtest.Noisy(20*time.Millisecond, 0.1, sleeps...),
			"simulate.per_worker=[1, 1.5, 1, 0.5]", "simulate.network={bandwidth: 500MB, latency: 700us}",
			"simulate.server={fold: 2GB, commit: 2GB}")}
	predict := func(scheme string, set []string) float64 {
		d := c
		d.Scheme, d.Seed, d.Set = scheme, 2, set
		return run(t, d).Duration.Seconds()
	}
	schemes := []string{"bsp", "ssp, staleness: 3", "asp"}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			c.Scheme = scheme
			r := record(t, c)
			cal, err := calibrate.Fit(r)
			if err != nil {
				t.Fatal(err)
			}
			m := cal.Models
			if m.Workers != 4 || m.RanksPerHost != 1 || cal.Slow != (straggler.Spec{Kind: "trace", Path: "run/iterations.csv"}) {
				t.Errorf("models %+v, %+v", m, cal.Slow)
			}
			simtest.Near(t, "compute", float64(m.Compute.Of(1)), 20e6, 0.03)
			for w, want := range []float64{1, 1.5, 1, 0.5} {
				simtest.Near(t, fmt.Sprintf("multiple of worker %d", w), m.PerWorker[w]*float64(m.Compute.Of(1)), want*20e6, 0.03)
			}
			if cal.Drawn.Slow == nil || cal.Drawn.Slow.Kind != "normal" || cal.Drawn.Gap > 0.05 {
				t.Errorf("drawn %+v", cal.Drawn)
			}
			simtest.Near(t, "spread", cal.Drawn.Share*20e6*(cal.Drawn.Slow.Factor-1)*cal.Drawn.Slow.Spread, 0.1*20e6, 0.1)
			simtest.Near(t, "bandwidth", float64(m.Network.Bandwidth), 500e6, 0.05)
			simtest.Near(t, "latency", float64(m.Network.Latency), 700e3, 0.10)
			simtest.Near(t, "fold", float64(m.FoldRate), 2e9, 0.02)
			simtest.Near(t, "the run again", cal.Simulated.Seconds(), cal.Measured.Seconds(), 0.002)
			cal.Draw()
			for _, other := range schemes {
				drawn := append(slices.Clone(c.Set), cal.Setting(), "faults=["+strings.Join(append(sleeps, configs.FaultText(cal.Fault())), ", ")+"]")
				want, got := predict(other, c.Set), predict(other, drawn)
				simtest.Near(t, "predicted for "+other, got, want, 0.03)
			}
		})
	}
}

// In a run whose servers cost more than the transfers, the rest of the time is latency, which is never negative.
func TestCalibrateStaysWithinItsRange(t *testing.T) {
	r := record(t, simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 20, Compute: "1ms"})
	cal, err := calibrate.Fit(r)
	if err != nil {
		t.Fatal(err)
	}
	if m := cal.Models; m.Network != (configs.Network{}) || m.FoldRate != 0 || m.CommitRate != 0 ||
		cal.Drawn.Slow != nil || cal.Simulated != cal.Measured {
		t.Errorf("from a run without costs and noise: %+v, %+v, %v for %v", m, cal.Drawn, cal.Simulated, cal.Measured)
	}
}

// One rank that works and serves sends nothing over the network, so its run contains no information about the network.
func TestCalibrateLeavesOutANetworkThatWasNotUsed(t *testing.T) {
	r := record(t, simtest.Setting{Workers: 1, Servers: 1, Scheme: "bsp", Iterations: 50, Bytes: 1000, Seed: 1,
		Set: []string{"cluster.placement=colocate"}})
	of := r.Iterations[0]
	for i := range of {
		of[i].Start += time.Duration(i) * time.Millisecond // time that a real run takes in addition to computing
		of[i].Pull = time.Microsecond
	}
	cal, err := calibrate.Fit(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := cal.Models.Network; n.Latency != 0 || n.Bandwidth != 0 {
		t.Errorf("network %+v", n)
	}
}

// The windows of all workers end together. Otherwise the last records of the fast workers would count as the pace of all.
func TestTheWindowEndsWithTheFirstWorkersRecords(t *testing.T) {
	r := record(t, simtest.Setting{Workers: 4, Servers: 1, Scheme: "asp", Iterations: 100,
		Set: []string{"faults=[{worker: 0, slow: {factor: 4}}]"}})
	r.Iterations[1] = r.Iterations[1][:20] // only 20 were kept: 200 ms
	n, end := calibrate.Window(&r)
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
		drawn, batches := calibrate.FitCompute(&m, [][]straggler.Trace{sample(c.f)})
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
		simtest.Near(t, c.kind+": base", float64(base), 2e6, 0.01)
		for w, want := range []float64{0.5, 1.5, 1} {
			simtest.Near(t, fmt.Sprintf("%s: worker %d", c.kind, w), multiples[w], want, 0.01)
		}
		simtest.Near(t, c.kind+": spread", spread, c.spread, 0.05)
	}
	if drawn, _ := calibrate.FitCompute(new(configs.Simulate),
		[][]straggler.Trace{sample(func(b float64) float64 { return b * float64(1+9*draw.IntN(2)) })}); drawn.Gap < 0.2 {
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
	drawn, _ := calibrate.FitCompute(&m, [][]straggler.Trace{traces})
	base := m.Compute.Of(1)
	if drawn.Slow == nil || drawn.Slow.Kind != "exponential" {
		t.Errorf("fitted %+v", drawn)
	}
	simtest.Near(t, "base", float64(base), 1e6, 0.015)
}

func TestModelsThatDoNotFitAreRefused(t *testing.T) {
	good := record(t, simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 10})
	for want, spoil := range map[string]func(r *calibrate.Recording, s *metrics.Summary){
		"it is a simulated run":                              func(_ *calibrate.Recording, s *metrics.Summary) { s.Mode = "simulated" },
		"has the iterations of 2 workers, but the run had 3": func(_ *calibrate.Recording, s *metrics.Summary) { s.Workers = 3 },
		"has 4 iterations of worker 1, too few to fit a model to": func(r *calibrate.Recording,
			_ *metrics.Summary) {
			r.Iterations[1] = r.Iterations[1][:4]
		},
	} {
		r, s := good, *good.Summary
		r.Summary, r.Iterations = &s, slices.Clone(good.Iterations)
		spoil(&r, &s)
		if _, err := calibrate.Fit(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The text is valid YAML for a configuration file, and means the same as the setting.
func TestCalibratedModelsReadBack(t *testing.T) {
	cal, err := calibrate.Fit(record(t, simtest.Setting{Workers: 3, Servers: 2, Scheme: "asp", Iterations: 40, Bytes: 4000,
		Set: []string{"faults=[" + simtest.Exponential(0.3) + "]", "simulate.network={bandwidth: 10MB, latency: 150us}",
			"simulate.server={fold: 1GB, commit: 1GB}"}}))
	if err != nil {
		t.Fatal(err)
	}
	const rest = "name: x\ndata: {set: generated}\nmodel: {name: softmax}\ntrain: {batch_per_worker: 1, optimizer: " +
		"{name: sgd, lr: 0.1}, stop: {updates: 1}}\n"
	for range 2 { // with the trace, then with the fitted noise
		pasted, _, ds := configs.Parse("pasted", []byte(rest+cal.Text([]configs.Fault{*cal.Fault()})), configs.Options{})
		if pasted == nil {
			t.Fatalf("%v in\n%s", ds, cal.Text([]configs.Fault{*cal.Fault()}))
		}
		set, _, ds := configs.Parse("set", []byte(rest), configs.Options{Set: []string{cal.Setting(),
			"faults[0]=" + configs.FaultText(cal.Fault())}})
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
		if got := calibrate.DecimalText(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
