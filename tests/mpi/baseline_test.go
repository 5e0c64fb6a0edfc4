//go:build mpi

package mpi

import (
	"math"
	"testing"
)

// The baselines give the same results over MPI as in one process: pslite the bits of bsp, allreduce within the tolerance of floats,
// because MPI adds in its own order. Ranks that ended with different bits would have failed the run.
func TestBaselinesOverMPI(t *testing.T) {
	rows := "data.rows=480" // an epoch has whole iterations, so that its mean loss is comparable
	want := overMPI(t, 5, rows)
	for _, set := range [][]string{
		{"baseline=pslite"},
		{"baseline=pslite", "shards.slice=even"},
		{"baseline=pslite", "cluster.servers=1"},
		{"baseline={name: pslite, keys: list}"},
		{"baseline={name: pslite, keys: scalar}"},
		{"baseline={name: pslite, keys: scalar}", "shards.slice=even"},
	} {
		n := 5
		if len(set) > 1 && set[1] == "cluster.servers=1" {
			n = 4
		}
		got := overMPI(t, n, append(set, rows)...)
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Baseline != "pslite" || got.Finished != "ok" || got.Samples != want.Samples {
			t.Errorf("%v: ended %q with %s after %d samples, bsp with %s after %d", set, got.Finished, got.ParametersSHA256,
				got.Samples, want.ParametersSHA256, want.Samples)
		}
	}
	for _, set := range [][]string{nil, {"evaluate.where=online"}} {
		got := overMPI(t, 3, append(set, rows, "baseline=allreduce")...)
		if got.Baseline != "allreduce" || got.Finished != "ok" || got.Servers != 0 || got.Workers != 3 ||
			got.Samples != want.Samples || got.Iterations != want.Iterations {
			t.Errorf("summary %+v", got)
		}
		if x := math.Abs(float64(*got.TrainLoss - *want.TrainLoss)); x > 1e-4 {
			t.Errorf("train loss %v, bsp %v", *got.TrainLoss, *want.TrainLoss)
		}
		if x := math.Abs(float64(*got.TestLoss - *want.TestLoss)); x > 1e-4 || len(got.Evaluations) != len(want.Evaluations) {
			t.Errorf("test loss %v in %d evaluations, bsp %v in %d", *got.TestLoss, len(got.Evaluations), *want.TestLoss, len(want.Evaluations))
		}
	}
}

// A sum in several buckets has the same result as one in a single bucket: 8 million parameters are 32 MB.
func TestAllreduceInBucketsOverMPI(t *testing.T) {
	set := []string{"model={name: mlp, layers: [2600, 2600, 600]}", "train.stop.updates=2", "train.batch_per_worker=2",
		"evaluate.every_epochs=0"}
	want := overMPI(t, 3, append(set, "cluster.servers=1")...)
	got := overMPI(t, 2, append(set, "baseline=allreduce")...)
	if got.Finished != "ok" || got.Iterations != 2 || math.Abs(float64(*got.TestLoss-*want.TestLoss)) > 1e-4 {
		t.Errorf("finished %q after %d iterations, test loss %v, bsp %v", got.Finished, got.Iterations, *got.TestLoss, *want.TestLoss)
	}
}
