//go:build cuda && mpi

package verbs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/show/metrics"
)

// asMain is the variable that makes the test binary run as the program.
const asMain = "FLUENTPS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		Main()
		return
	}
	os.Exit(m.Run())
}

// The pieces of two layers are messages of their own. The piece of the last layer is sent in frames.
const cudaAwareConfig = `
name: cuda-aware
seed: 7
cluster: {servers: 1, shared_memory: off}
data: {set: generated, rows: 256, test_rows: 64, features: 64}
model: {name: mlp, layers: [64, 64]}
train:
  batch_per_worker: 16
  optimizer: {name: momentum, lr: 0.05}
  stop: {updates: 12}
device: {kind: cuda}
`

// trainOverMPI trains with a server and two workers on the emulated driver, over a library that says whether it is
// CUDA-aware. It returns the bytes that were copied to the host and to the GPUs.
func trainOverMPI(t *testing.T, aware bool, order string, set ...string) (run trainedRun, toHost, toGPU int) {
	t.Helper()
	dir := t.TempDir()
	file, copies := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "copies")
	if err := os.WriteFile(file, []byte(cudaAwareConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	program := []string{os.Args[0], "run", "--out", filepath.Join(dir, "out")}
	for _, s := range set {
		program = append(program, "--set", s)
	}
	run.code, run.out = mpitest.Built.Run(t, mpitest.Job{Ranks: 3, Program: append(program, file),
		Env: []string{asMain + "=1", mpitest.SayCUDA(t, aware), "CUEMU_ORDER=" + order, "CUEMU_COPIES=" + copies,
			"CUEMU_OPEN=" + map[bool]string{true: "1"}[aware]}})
	if data, err := os.ReadFile(filepath.Join(dir, "out", "summary.json")); err == nil {
		run.summary = metrics.Summary{}
		if err := json.Unmarshal(data, &run.summary); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "out", "run.json")); err == nil {
		run.runJSON = string(data)
	}
	lines, _ := os.ReadFile(copies)
	for line := range strings.Lines(string(lines)) {
		var out, in int
		if _, err := fmt.Sscan(line, &out, &in); err != nil {
			t.Fatalf("copies %q: %v", line, err)
		}
		toHost, toGPU = toHost+out, toGPU+in
	}
	return run, toHost, toGPU
}

// Over a CUDA-aware MPI only the parameters and gradients in frames are copied to the host or from it, and the run ends with the
// same bits as with copies. Plain MPI can send from the emulated GPU, because its memory is on the host.
func TestMessagesInTheMemoryOfGPUs(t *testing.T) {
	emulatedOnly(t)
	staged, wantHost, wantGPU := trainOverMPI(t, false, "lazy")
	if staged.code != 0 || strings.Count(staged.runJSON, `"cuda_aware_mpi": "no: `) != 2 {
		t.Fatalf("with copies: code %d\n%s\n%s", staged.code, staged.out, staged.runJSON)
	}
	const layers = 2 * (64*64 + 64) * 4 // bytes
	const workers, iterations = 2, 12
	wantHost -= workers * iterations * layers
	wantGPU -= workers * (iterations + 2) * layers // both arenas are copied once before the first iteration
	for _, order := range []string{"lazy", "eager"} {
		direct, toHost, toGPU := trainOverMPI(t, true, order, "device.cuda_aware_mpi=on")
		if direct.code != 0 || strings.Count(direct.runJSON, `"cuda_aware_mpi": "yes"`) != 2 {
			t.Fatalf("%s: code %d\n%s\n%s", order, direct.code, direct.out, direct.runJSON)
		}
		if got, want := direct.summary.ParametersSHA256, staged.summary.ParametersSHA256; got != want || want == "" {
			t.Errorf("%s: parameters %s, with copies %s", order, got, want)
		}
		if toHost != wantHost || toGPU != wantGPU {
			t.Errorf("%s: copied %d bytes to the host and %d to the GPUs, want %d and %d", order, toHost, toGPU, wantHost, wantGPU)
		}
	}
}

// MPI may copy memory of the GPU in any call, and looks for the device on the thread of the call. So the thread that
// sends heartbeats has it too: the library that answers for MPI ends a rank that calls MPI without it. The run takes
// longer than a round of heartbeats.
func TestEveryThreadThatCallsMPIHasTheGPU(t *testing.T) {
	emulatedOnly(t)
	run, _, _ := trainOverMPI(t, true, "lazy", "train.stop={time: 1s}", "stall.peer=3s")
	if run.code != 0 || strings.Count(run.runJSON, `"cuda_aware_mpi": "yes"`) != 2 {
		t.Errorf("code %d\n%s\n%s", run.code, run.out, run.runJSON)
	}
}

// Where a batch is computed in steps the host adds up their gradients, so a CUDA-aware MPI gets them there, with the same bits.
func TestStepsOfABatchGoThroughTheHost(t *testing.T) {
	emulatedOnly(t)
	const steps = "work={policy: anytime, time: 1h, micro: 8}"
	staged, wantHost, wantGPU := trainOverMPI(t, false, "lazy", steps)
	aware, toHost, toGPU := trainOverMPI(t, true, "lazy", steps)
	if aware.code != 0 || strings.Count(aware.runJSON, `"cuda_aware_mpi": "yes"`) != 2 {
		t.Fatalf("code %d\n%s\n%s", aware.code, aware.out, aware.runJSON)
	}
	if got, want := aware.summary.ParametersSHA256, staged.summary.ParametersSHA256; got != want || want == "" ||
		toHost != wantHost || toGPU != wantGPU {
		t.Errorf("parameters %s, %d bytes to the host and %d to the GPUs; want %s, %d and %d", got, toHost, toGPU, want, wantHost, wantGPU)
	}
}

func TestAnMPIThatMustBeCUDAAware(t *testing.T) {
	emulatedOnly(t)
	run, _, _ := trainOverMPI(t, false, "lazy", "device.cuda_aware_mpi=on")
	if run.code != codeUsage || !strings.Contains(run.out, "device.cuda_aware_mpi: on, but Open MPI") ||
		!strings.Contains(run.out, " says that it is not CUDA-aware; take an MPI that is built with CUDA, or set device.cuda_aware_mpi: auto") {
		t.Errorf("code %d:\n%s", run.code, run.out)
	}
}
