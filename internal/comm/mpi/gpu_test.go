//go:build mpi

package mpi

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/mpi/mpitest"
)

// printCUDA is a child that prints whether its MPI is CUDA-aware.
func printCUDA() { fmt.Printf("CUDA-aware: %v\n", world.(comm.CUDAAware).CUDAAware()) }

func TestCUDAAwareIsWhatTheLibrarySays(t *testing.T) {
	for _, c := range []struct {
		says bool
		want string
	}{
		{true, "CUDA-aware: <nil>\n"},
		{false, "CUDA-aware: " + Library() + " says that it is not CUDA-aware\n"},
	} {
		code, out := launch(t, mpitest.Job{Ranks: 1, Env: []string{mpitest.SayCUDA(t, c.says)}}, "cuda")
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("the library says %t: code %d, want %q in:\n%s", c.says, code, c.want, out)
		}
	}
}

func TestCUDABeforeMPIHasStarted(t *testing.T) {
	if said := CUDA(); !strings.HasSuffix(said, "; the library is asked when a run starts") {
		t.Errorf("before MPI has started: %q", said)
	}
}
