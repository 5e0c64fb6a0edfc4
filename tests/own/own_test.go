// Package own builds the modules ps/scheme/example and ps/workload/example, which have a scheme and models of their own, and uses them as a
// researcher would.
package own

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/comm/mpi/mpitest"
)

const example = "../../ps/scheme/example"

func TestASchemeOfAnotherModule(t *testing.T) {
	dependOnSources(t)
	program, configuration := filepath.Join(t.TempDir(), "alternate"), filepath.Join(example, "alternate.yaml")
	says(t, "", "go", "build", "-C", example, "-tags", builtTags, "-o", program, ".")
	says(t, "ok", "go", "test", "-C", example, ".")
	says(t, "as ssp, with the bound staleness before even iterations", program, "explain", "alternate")
	says(t, "alternate", program, "explain")
	says(t, "staleness", program, "explain", "sync.staleness")
	says(t, "ok", program, "check", configuration, "--ranks", "4")
	refused(t, "staleness: -1 is not allowed: integer >= 0", program, "check", configuration, "--set", "sync[0].staleness=-1")
	says(t, "Finished: ok", program, "simulate", configuration, "--workers", "3")
	says(t, "alternate", program, "run", configuration, "--local", "4", "--out", filepath.Join(t.TempDir(), "local"))
	if builtTags == "" {
		return
	}
	line, err := mpitest.Built.Line(4, program, "run", configuration, "--out", filepath.Join(t.TempDir(), "mpi"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, "alternate", line...)
}

func TestAnIncompleteSchemeIsRefused(t *testing.T) {
	dir := copied(t, example, []string{"main.go", "go.mod", "go.sum"}, "", `Name:     "alternate"`, `Name:     "ssp"`)
	program := filepath.Join(dir, "twice")
	says(t, "", "go", "build", "-C", dir, "-o", program, ".")
	refused(t, `scheme "ssp": the name is taken`, program, "explain", "ssp")
}

// dependOnSources lists the folders of the sources, so that `go test` does not use a cached result after a source has changed.
func dependOnSources(t *testing.T) {
	for _, top := range []string{"../../internal/comm", "../../configs", "../../fluentps.go", "../../go.sum", "../../kernels",
		"../../ps", "../../slurm", "../../internal/verbs"} {
		if err := filepath.WalkDir(top, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
}

// says runs the command, which must succeed with want in its output.
func says(t *testing.T, want string, line ...string) {
	t.Helper()
	if out, err := output(line); err != nil || !strings.Contains(out, want) {
		t.Fatalf("%s: %v, want %q in\n%s", strings.Join(line, " "), err, want, out)
	}
}

// refused runs the command, which must end with code 2 and want in its output.
func refused(t *testing.T, want string, line ...string) {
	t.Helper()
	out, err := output(line)
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(out, want) {
		t.Fatalf("%s: %v, want exit code 2 and %q in\n%s", strings.Join(line, " "), err, want, out)
	}
}

func output(line []string) (string, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), mpitest.Env()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
