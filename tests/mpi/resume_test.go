//go:build mpi

package mpi

import (
	"path/filepath"
	"testing"

	"fluentps/comm/mpi/mpitest"
)

// A run that goes on from its checkpoint over MPI ends with the bits of one that was never interrupted, in one process.
func TestAResumedRunIsBitEqualOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	for _, set := range [][]string{
		{"train.optimizer={name: adam, lr: 0.01}"},
		{"payload={push: topk, ratio: 0.1}", "shards.slice=layer"},
	} {
		want := inProcess(t, ranks, set...)
		dir := filepath.Join(t.TempDir(), "out")
		partOverMPI(t, ranks, dir, "", append(set, "train.stop={updates: 13}")...)
		got, _ := partOverMPI(t, ranks, dir, dir, set...)
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Iterations != 40 || got.Resumed == nil || got.Resumed.Iteration != 13 {
			t.Errorf("%v: sha256 %s after %d iterations, resumed %+v; want %s", set, got.ParametersSHA256, got.Iterations, got.Resumed, want.ParametersSHA256)
		}
	}
}
