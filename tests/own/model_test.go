package own

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fluentps/internal/comm/mpi/mpitest"
)

const modelExample = "../../ps/workload/example"

// copied is a copy of the module with some texts replaced, and a file more.
func copied(t *testing.T, from string, files []string, more string, replace ...string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.NewReplacer(append(replace, "=> ../../..", "=> "+root)...)
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(texts.Replace(string(data))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if more != "" {
		if err := os.WriteFile(filepath.Join(dir, "more.go"), []byte(more), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAModelOfAnotherModule(t *testing.T) {
	dependOnSources(t)
	program, configuration := filepath.Join(t.TempDir(), "models"), filepath.Join(modelExample, "elman.yaml")
	says(t, "", "go", "build", "-C", modelExample, "-tags", builtTags, "-o", program, ".")
	says(t, "ok", "go", "test", "-C", modelExample, ".")
	says(t, "a recurrent network of 8", program, "explain", "model.name")
	says(t, "ok", program, "check", configuration, "--ranks", "4")
	says(t, "ok", program, "check", configuration, "--ranks", "4", "--set", "model.name=by_hand", "--set", "sync=[{match: '*', scheme: asp}]")
	says(t, "cell.back[", program, "plan", configuration, "--ranks", "4")
	says(t, "Finished: ok", program, "simulate", configuration, "--workers", "3")
	says(t, "Finished: ok", program, "simulate", configuration, "--workers", "3", "--set", "simulate.gradients=true")
	says(t, "Finished: ok", program, "run", configuration, "--local", "4", "--out", filepath.Join(t.TempDir(), "local"))
	refused(t, "model elman: rows of 31 numbers are not 4 equal steps; take a multiple of 4 features", program, "plan",
		configuration, "--ranks", "4", "--set", "data.features=31")
	if builtTags == "" {
		return
	}
	line, err := mpitest.Built.Line(4, program, "run", configuration, "--out", filepath.Join(t.TempDir(), "mpi"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, "Finished: ok", line...)
}

// failing is a model that fails in a pass of a step of one worker, as a device may.
const failing = `package main

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"

	"fluentps/ps/workload"
)

// passes counts those of all models of the process.
var passes atomic.Int64

type brittle struct{ workload.Model }

func fails() error {
	if at, _ := strconv.ParseInt(os.Getenv("FAILS_AT"), 10, 64); passes.Add(1) == at {
		return errors.New("the card has fallen off the bus")
	}
	return nil
}

func (b brittle) Forward(x workload.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if err := fails(); err != nil {
		return 0, 0, err
	}
	return b.Model.Forward(x, wait)
}

func (b brittle) Backward(ready func(layer int)) error {
	if err := fails(); err != nil {
		return err
	}
	return b.Model.Backward(ready)
}

func init() {
	whole := elman.New
	elman.New = func(s workload.ModelSpec, from workload.Samples, d workload.Device, batchMax int) (workload.Model, error) {
		m, err := whole(s, from, d, batchMax)
		return brittle{m}, err
	}
}
`

// A model that fails at a moment drawn ends the run with code 1 on all ranks, in one process and in many. The error names the rank, the
// step and the cause, and no bug of fluentps.
func TestAModelThatFailsEndsTheRun(t *testing.T) {
	dependOnSources(t)
	dir := copied(t, modelExample, []string{"main.go", "elman.go", "go.mod", "go.sum", "elman.yaml"}, failing)
	program := filepath.Join(dir, "brittle")
	says(t, "", "go", "build", "-C", dir, "-tags", builtTags, "-o", program, ".")
	says1 := regexp.MustCompile(`rank \d, worker \d: iteration \d+: (forward|backward): the card has fallen off the bus`)
	random := rand.New(rand.NewPCG(3, 1))
	for range 3 {
		at := 1 + random.IntN(200)
		t.Setenv("FAILS_AT", fmt.Sprint(at))
		lines := [][]string{{program, "run", filepath.Join(dir, "elman.yaml"), "--local", "4", "--out", filepath.Join(t.TempDir(), "local")}}
		if builtTags != "" {
			line, err := mpitest.Built.Line(4, program, "run", filepath.Join(dir, "elman.yaml"), "--out", filepath.Join(t.TempDir(), "mpi"))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		for _, line := range lines {
			out, err := output(line)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !says1.MatchString(out) ||
				strings.Contains(out, "[running]") || strings.Contains(out, "bug in fluentps") {
				t.Errorf("pass %d fails: %s: %v, want code 1 and %s in\n%s", at, strings.Join(line, " "), err, says1, out)
			}
		}
	}
}
