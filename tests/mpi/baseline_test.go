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
	sets := [][]string{
		{rows},
		{rows, "baseline=pslite"},
		{rows, "baseline=pslite", "shards.slice=even"},
		{rows, "baseline={name: pslite, keys: list}"},
		{rows, "baseline={name: pslite, keys: scalar}"},
		{rows, "baseline={name: pslite, keys: scalar}", "shards.slice=even"},
	}
	runs := eachOverMPI(t, 5, sets)
	want := runs[0]
	sets = append(sets, []string{rows, "baseline=pslite", "cluster.servers=1"})
	runs = append(runs, overMPI(t, 4, sets[len(sets)-1]...))
	for k, got := range runs[1:] {
		set := sets[1+k]
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Baseline != "pslite" || got.Finished != "ok" || got.Samples != want.Samples {
			t.Errorf("%v: ended %q with %s after %d samples, bsp with %s after %d", set, got.Finished, got.ParametersSHA256,
				got.Samples, want.ParametersSHA256, want.Samples)
		}
	}
	for _, got := range eachOverMPI(t, 3, [][]string{{rows, "baseline=allreduce"}, {rows, "baseline=allreduce", "evaluate.where=online"}}) {
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
