package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/configs"
	"fluentps/configs/configstest"
	"fluentps/ps/shard"
)

// The time of computing is the cost of the worker's batch times the worker's multiple.
func TestComputingCostsByTheBatch(t *testing.T) {
	for _, batch := range []string{"batch_per_worker: 24", "batch_global: 49"} {
		c := configstest.Load(t, "cluster.servers=1", "train={"+batch+", optimizer: {name: sgd, lr: 0.1}, stop: {updates: 20}}",
			"simulate={workers: 2, compute: {fixed: 1ms, per_sample: 200us}, per_worker: [1, 2], network: {latency: 0s}, server: {fold: 0B, commit: 0B}}", "evaluate.every_epochs=0")
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 8}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		shares := []int64{24, 24}
		if c.Train.BatchGlobal > 0 {
			shares = []int64{25, 24}
		}
		computed := 0
		_, err = Run(Options{Config: c, Plan: plan, Rows: 480, Computed: func(w int, iter int64, from, until time.Duration) {
			computed++
			want := time.Duration(1+w) * (time.Millisecond + time.Duration(shares[w])*200*time.Microsecond)
			if until-from != want {
				t.Errorf("%s: worker %d computes iteration %d for %v, want %v", batch, w, iter, until-from, want)
			}
		}})
		if err != nil || computed != 40 {
			t.Error(fmt.Errorf("%s: %d iterations: %w", batch, computed, err))
		}
	}
}

// Runs with two batches tell what of the computing time goes by iteration and what by sample, for each worker. With one batch all of it counts
// as time per sample.
func TestCalibrateFindsTheCostOfABatch(t *testing.T) {
	of := func(batch int, set ...string) Recording {
		return record(t, setting{workers: 3, servers: 1, scheme: "asp", iterations: 60, bytes: 400_000, seed: 1, set: append(set,
			fmt.Sprintf("train.batch_per_worker=%d", batch), fmt.Sprintf("train.stop.samples=%d", 3*60*batch), "simulate.compute={fixed: 4ms, per_sample: 500us}",
			"simulate.per_worker=[1, 2, 4]", "simulate.fixed_per_worker=[1, 0, 2]", "simulate.network={bandwidth: 1GB, latency: 100us}", "faults=["+exponential(0.05)+"]")})
	}
	cal, err := Calibrate(of(8), of(32), of(16))
	if err != nil {
		t.Fatal(err)
	}
	if cal.Batches != 3 {
		t.Errorf("%d batches", cal.Batches)
	}
	for w, want := range []cost{{4e6, 5e5}, {0, 1e6}, {8e6, 2e6}} {
		got := costOf(&cal.Models, w)
		for _, batch := range []int64{1, 8, 64} { // the slowness is noise around the times, and none is negative
			near(t, fmt.Sprintf("worker %d, a batch of %d: %+v", w, batch, got), float64(got.of(batch)), float64(want.of(batch)), 0.08)
		}
	}
	one, err := Calibrate(of(8))
	if err != nil {
		t.Fatal(err)
	}
	if one.Batches != 1 || one.Models.Compute.Fixed != 0 || !strings.Contains(one.Text(nil), "all iterations of a worker had one batch") || strings.Contains(cal.Text(nil), "one batch") {
		t.Errorf("one batch: %+v\n%s", one.Models, one.Text(nil))
	}
	short := of(8)
	short.Iterations, short.Summary.Workers = short.Iterations[:2], 2
	if _, err := Calibrate(of(8), short); err == nil || !strings.Contains(err.Error(), "of the same workers") {
		t.Errorf("runs of 3 and 2 workers: %v", err)
	}
}

// A line through exact points is that line, and what cannot be is cut off: neither part is below 0.
func TestFitOfACostIsALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := cost{rapid.Float64Range(0, 1e9).Draw(t, "fixed"), rapid.Float64Range(0, 1e7).Draw(t, "per sample")}
		var of []timed
		for _, b := range rapid.SliceOfNDistinct(rapid.Float64Range(1, 4096), 2, 6, func(b float64) float64 { return math.Round(b) }).Draw(t, "batches") {
			of = append(of, timed{batch: math.Round(b), mean: want.fixed + want.perSample*math.Round(b)})
		}
		got := fitCost(of)
		for _, x := range of {
			if at := got.fixed + got.perSample*x.batch; math.Abs(at-x.mean) > 1e-6*(1+x.mean) {
				t.Fatalf("%+v for %+v: %g at %g", got, want, at, x.batch)
			}
		}
	})
	for _, c := range []struct {
		of   []timed
		want cost
	}{
		{[]timed{{batch: 4, mean: 100}}, cost{perSample: 25}},
		{[]timed{{batch: 4, mean: 100}, {batch: 8, mean: 60}}, cost{fixed: 80}},
		{[]timed{{batch: 1, mean: 1}, {batch: 2, mean: 4}}, cost{perSample: 1.8}},
	} {
		if got := fitCost(c.of); math.Abs(got.fixed-c.want.fixed) > 1e-9 || math.Abs(got.perSample-c.want.perSample) > 1e-9 {
			t.Errorf("%v: %+v, want %+v", c.of, got, c.want)
		}
	}
}

// A trace is stretched where the batch is another one than that of the recorded iteration.
func TestATraceOfAnotherBatchIsStretched(t *testing.T) {
	c := setting{workers: 1, servers: 1, scheme: "bsp", iterations: 3, set: []string{"faults=[" + replaying + "]", "simulate.compute={fixed: 10ms, per_sample: 1ms}", "train.batch_per_worker=30", "train.stop.samples=90"}}
	o := c.options(t)
	o.Traces = configs.Traces{"t": {{{Own: 20 * time.Millisecond, Samples: 10}, {Own: 30 * time.Millisecond, Samples: 30}, {Own: 8 * time.Millisecond}}}}
	var got []time.Duration
	o.Computed = func(_ int, _ int64, from, until time.Duration) { got = append(got, until-from) }
	if _, err := Run(o); err != nil || !slices.Equal(got, []time.Duration{40 * time.Millisecond, 30 * time.Millisecond, 8 * time.Millisecond}) {
		t.Errorf("%v, %v", got, err)
	}
}
