//go:build mpi

package mpi

import (
	"fmt"
	"slices"
	"testing"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/policy/work"
)

// Every policy that moves, cuts or copies the work of an iteration ends over MPI, with one slow worker. Those that leave nothing out
// have all samples, and a loss like that of a run without a policy: sums are added up in another order.
func TestPoliciesOfTasksOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(5)
	more := map[string][]string{"anytime": {", time: 3ms"}, "dropcompute": {", time: 3ms"}, "coded": {"", ", code: {stragglers: 1, alpha: 2}"}}
	for _, place := range []string{"cluster={servers: 1}", "cluster={servers: 2, placement: colocate}"} {
		set := []string{place, "faults=[{worker: 1, slow: {sleep: 4ms}}]", "train.stop={updates: 20}"}
		sets, names, entries := [][]string{append(slices.Clone(set), "cluster.shared_memory=off")}, []string{""}, work.All[:1:1]
		for _, e := range work.All {
			if e.Name == work.Fixed || e.Deals() {
				continue
			}
			if more[e.Name] == nil {
				more[e.Name] = []string{""}
			}
			for _, keys := range more[e.Name] {
				keys = "policy: " + e.Name + keys
				of := append(slices.Clone(set), fmt.Sprintf("work={%s}", keys))
				if e.Scheme != "" {
					of = append(of, fmt.Sprintf("sync=[{match: '*', scheme: %s}]", e.Scheme))
				}
				sets, names, entries = append(sets, of), append(names, keys), append(entries, e)
			}
		}
		runs := eachOverMPI(t, ranks, sets)
		want := runs[0]
		for k, s := range runs {
			if keys, e := names[k], entries[k]; k > 0 {
				loss, plain, cuts := float64(*s.TrainLoss), float64(*want.TrainLoss), e.Cuts
				if s.Finished != "ok" || s.Iterations != want.Iterations || s.BytesSent != s.BytesReceived {
					t.Errorf("%s %s: %s after %d iterations, want ok after %d; %d bytes were sent and %d received", place, keys,
						s.Finished, s.Iterations, want.Iterations, s.BytesSent, s.BytesReceived)
				}
				likeIt := e.Coded || loss >= plain-0.01 && loss <= plain+0.01 // coded: of the batches of those whose pushes were used
				if !cuts && (s.Samples != want.Samples || !likeIt) || cuts && (s.Samples >= want.Samples || s.Samples == 0) {
					t.Errorf("%s %s: %d samples and a loss of %g, without the policy %d and %g", place, keys, s.Samples, loss, want.Samples, plain)
				}
			}
		}
	}
}
