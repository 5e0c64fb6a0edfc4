//go:build mpi

package mpi

import "testing"

// Teams over MPI share windows of its memory. All computing ranks of one host are one team. The bits are those of one process.
func TestTeamsGiveTheSameBitsOverMPI(t *testing.T) {
	for _, set := range [][]string{
		{"cluster={servers: 1, hierarchy: node}"},
		{"cluster={servers: 2, placement: colocate, hierarchy: node}", "shards={slice: layer, max_bytes: 1KiB}", "send.order=priority"},
		{"cluster={servers: 1, hierarchy: node}", "sync=[{match: '*', scheme: consgd}]", "faults=[{worker: 2, slow: {sleep: 2ms}}]"},
	} {
		want := inProcess(t, 4, set...)
		got := overMPI(t, 4, set...)
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Finished != "ok" || got.Samples != want.Samples {
			t.Errorf("%v: ended %q with sha256 %s after %d samples, in process with %s after %d", set, got.Finished,
				got.ParametersSHA256, got.Samples, want.ParametersSHA256, want.Samples)
		}
		if got.Workers != 1 || got.Computing < 3 || *got.BytesBetween != 0 || len(got.PerWorker[0].Members) != got.Computing-1 {
			t.Errorf("%v: summary %+v", set, got)
		}
	}
}
