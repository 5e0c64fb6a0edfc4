package calibrate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/simtest"
)

// Runs with two batches tell what of the computing time goes by iteration and what by sample, for each worker. With
// one batch all of it counts as time per sample.
func TestCalibrateFindsTheCostOfABatch(t *testing.T) {
	of := func(batch int, set ...string) calibrate.Recording {
		return record(t, simtest.Setting{Workers: 3, Servers: 1, Scheme: "asp", Iterations: 60, Bytes: 400_000, Seed: 1, Set: append(set,
			fmt.Sprintf("train.batch_per_worker=%d", batch), fmt.Sprintf("train.stop.samples=%d", 3*60*batch),
			"simulate.compute={fixed: 4ms, per_sample: 500us}",
			"simulate.per_worker=[1, 2, 4]", "simulate.fixed_per_worker=[1, 0, 2]",
			"simulate.network={bandwidth: 1GB, latency: 100us}", "faults=["+simtest.Exponential(0.05)+"]")})
	}
	cal, err := calibrate.Fit(of(8), of(32), of(16))
	if err != nil {
		t.Fatal(err)
	}
	if cal.Batches != 3 {
		t.Errorf("%d batches", cal.Batches)
	}
	for w, want := range []sim.Cost{{Fixed: 4e6, PerSample: 5e5}, {Fixed: 0, PerSample: 1e6}, {Fixed: 8e6, PerSample: 2e6}} {
		got := sim.CostOf(&cal.Models, w)
		for _, batch := range []int64{1, 8, 64} { // the slowness is noise around the times, and none is negative
			simtest.Near(t, fmt.Sprintf("worker %d, a batch of %d: %+v", w, batch, got), float64(got.Of(batch)), float64(want.Of(batch)), 0.08)
		}
	}
	one, err := calibrate.Fit(of(8))
	if err != nil {
		t.Fatal(err)
	}
	if one.Batches != 1 || one.Models.Compute.Fixed != 0 ||
		!strings.Contains(one.Text(nil), "all iterations of a worker had one batch") || strings.Contains(cal.Text(nil), "one batch") {
		t.Errorf("one batch: %+v\n%s", one.Models, one.Text(nil))
	}
	short := of(8)
	short.Iterations, short.Summary.Workers = short.Iterations[:2], 2
	if _, err := calibrate.Fit(of(8), short); err == nil || !strings.Contains(err.Error(), "of the same workers") {
		t.Errorf("runs of 3 and 2 workers: %v", err)
	}
}

// A line through exact points is that line, and what cannot be is cut off: neither part is below 0.
func TestFitOfACostIsALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := sim.Cost{Fixed: rapid.Float64Range(0, 1e9).Draw(t, "fixed"), PerSample: rapid.Float64Range(0, 1e7).Draw(t, "per sample")}
		var of []calibrate.Timed
		for _, b := range rapid.SliceOfNDistinct(rapid.Float64Range(1, 4096), 2, 6,
			func(b float64) float64 { return math.Round(b) }).Draw(t, "batches") {
			of = append(of, calibrate.TimedOf(math.Round(b), want.Fixed+want.PerSample*math.Round(b)))
		}
		got := calibrate.FitCost(of)
		for _, x := range of {
			if at := got.Fixed + got.PerSample*x.Batch(); math.Abs(at-x.Mean()) > 1e-6*(1+x.Mean()) {
				t.Fatalf("%+v for %+v: %g at %g", got, want, at, x.Batch())
			}
		}
	})
	for _, c := range []struct {
		of   []calibrate.Timed
		want sim.Cost
	}{
		{[]calibrate.Timed{calibrate.TimedOf(4, 100)}, sim.Cost{PerSample: 25}},
		{[]calibrate.Timed{calibrate.TimedOf(4, 100), calibrate.TimedOf(8, 60)}, sim.Cost{Fixed: 80}},
		{[]calibrate.Timed{calibrate.TimedOf(1, 1), calibrate.TimedOf(2, 4)}, sim.Cost{PerSample: 1.8}},
	} {
		if got := calibrate.FitCost(c.of); math.Abs(got.Fixed-c.want.Fixed) > 1e-9 || math.Abs(got.PerSample-c.want.PerSample) > 1e-9 {
			t.Errorf("%v: %+v, want %+v", c.of, got, c.want)
		}
	}
}
