package mpitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// answers are the functions by which MPI libraries report whether they are CUDA-aware.
const answers = `
int MPIX_Query_cuda_support(void) { return ANSWER; }
int MPIX_GPU_query_support(int kind, int *yes) { *yes = kind == 0 && ANSWER; return 0; }
`

// SayCUDA makes a library that answers in place of MPI whether it is CUDA-aware, and returns the environment variable
// that makes ranks load it first.
func SayCUDA(t testing.TB, yes bool) string {
	t.Helper()
	answer := 0
	if yes {
		answer = 1
	}
	source, library := filepath.Join(t.TempDir(), "answers.c"), filepath.Join(t.TempDir(), "libanswers.so")
	if err := os.WriteFile(source, []byte(answers), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", fmt.Sprintf("-DANSWER=%d", answer), "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	if err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return "LD_PRELOAD=" + library
}
