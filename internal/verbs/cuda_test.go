//go:build cuda

package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
	"fluentps/kernels/cuda"
)

const cudaConfig = `
name: two-workers
seed: 7
cluster: {servers: 1}
data: {set: generated, rows: 256, test_rows: 64, features: 20}
model: {name: mlp, layers: [32, 16]}
train:
  batch_per_worker: 16
  optimizer: {name: momentum, lr: 0.05}
  stop: {samples: 640}
`

// trainedRun is the outcome of a run.
type trainedRun struct {
	code     int
	out, err string
	logs     string // of all ranks
	summary  metrics.Summary
	runJSON  string
}

// trainLocally trains with one server and two workers.
func trainLocally(t *testing.T, set ...string) trainedRun {
	t.Helper()
	return trainRanks(t, 3, set...)
}

func trainRanks(t *testing.T, ranks int, set ...string) trainedRun {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(cudaConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"fluentps", "run", "--local", strconv.Itoa(ranks), "--out", filepath.Join(dir, "out")}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	var out, errOut bytes.Buffer
	run := trainedRun{code: report(&errOut, newApp(&out, &errOut).Run(append(args, file)))}
	run.out, run.err = out.String(), errOut.String()
	if data, err := os.ReadFile(filepath.Join(dir, "out", "summary.json")); err == nil {
		if err := json.Unmarshal(data, &run.summary); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "out", "run.json")); err == nil {
		run.runJSON = string(data)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "out", "logs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		run.logs += string(data)
	}
	return run
}

// emulatedOnly skips a test that no real GPU can be made to pass.
func emulatedOnly(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "emulated" {
		return
	}
	t.Skip("needs the emulated driver")
}

// copiedBytes adds up what the emulated driver has appended to CUEMU_COPIES.
func copiedBytes(t *testing.T, file string) (toHost, toGPU int) {
	t.Helper()
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		var out, in int
		if _, err := fmt.Sscan(line, &out, &in); err != nil {
			t.Fatalf("copies %q: %v", line, err)
		}
		toHost, toGPU = toHost+out, toGPU+in
	}
	return toHost, toGPU
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(b) }

func TestTwoWorkersTrainOnGPUsAsOnTheCPU(t *testing.T) {
	if _, err := cuda.GPUs(); err != nil && os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip(err)
	}
	for _, sync := range []string{"bsp", "ssp"} {
		scheme := `sync=[{match: "*", scheme: ` + sync + `}]`
		host, gpu := trainLocally(t, scheme, "device.kind=cpu"), trainLocally(t, scheme, "device.kind=cuda")
		if gpu.code != 0 || host.code != 0 {
			t.Fatalf("codes %d on GPUs and %d on the CPU:\n%s", gpu.code, host.code, gpu.err)
		}
		want, got := float64(*host.summary.Evaluations[0].TestLoss), float64(*gpu.summary.Evaluations[0].TestLoss)
		if sync == "bsp" && !near(got, want, 1e-4) {
			t.Errorf("test loss %g on GPUs, %g on the CPU", got, want)
		}
		if len(gpu.summary.PerWorker) != 2 || !strings.HasPrefix(gpu.summary.PerWorker[1].Device, "cuda (") ||
			!strings.HasPrefix(host.summary.PerWorker[1].Device, "cpu (") {
			t.Errorf("devices of the workers: %+v", gpu.summary.PerWorker)
		}
		if n := strings.Count(gpu.runJSON, `"device": "cuda (`); n != 2 {
			t.Errorf("run.json names %d GPUs, want 2, and none of the server:\n%s", n, gpu.runJSON)
		}
	}
}

// Batches change from epoch to epoch, and an epoch ends with an iteration in which a worker has no sample: GPUs train
// as the CPU, on batches from a record.
func TestBatchesThatChangeTrainOnGPUsAsOnTheCPU(t *testing.T) {
	if _, err := cuda.GPUs(); err != nil && os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip(err)
	}
	const iterations = 6 // of an epoch: 256 rows in batches of 51, the last one of one row
	record := work.RecordHeader()
	for k, times := range [][2]time.Duration{{1e6, 3e6}, {5e6, 1e6}, {2e6, 1e6}} {
		a := work.Assignment{Until: iterations * int64(k+1), Batches: []int{1, 1}}
		var measured []work.Measured
		for _, took := range times {
			measured = append(measured, work.Measured{Iterations: iterations, Samples: 100, Took: took, Median: took})
		}
		record = work.AppendRecord(record, &a, measured)
	}
	path := filepath.Join(t.TempDir(), work.RecordName)
	if err := os.WriteFile(path, record, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, placement := range []string{"spread", "colocate"} {
		set := []string{"train.batch_per_worker=null", "train.batch_global=51", "train.stop={epochs: 4}",
			"work={policy: dbs, replay: " + path + "}", "cluster.placement=" + placement}
		if placement == "colocate" { // three ranks compute
			set[3] = "work.shares=[1, 2, 4]"
		}
		host, gpu := trainLocally(t, append(set, "device.kind=cpu")...), trainLocally(t, append(set, "device.kind=cuda")...)
		if gpu.code != 0 || host.code != 0 {
			t.Fatalf("codes %d on GPUs and %d on the CPU:\n%s%s", gpu.code, host.code, gpu.err, host.err)
		}
		want, got := float64(*host.summary.Evaluations[0].TestLoss), float64(*gpu.summary.Evaluations[0].TestLoss)
		if !near(got, want, 1e-4) || gpu.summary.Samples != host.summary.Samples || placement == "spread" && gpu.summary.Samples != 4*256 {
			t.Errorf("%s: test loss %g after %d samples on GPUs, %g after %d on the CPU", placement, got, gpu.summary.Samples,
				want, host.summary.Samples)
		}
	}
}

// Workers that take steps of their own keep their parameters on the GPU, and train there as on the CPU. The
// parameters move once in a round.
func TestStepsOfTheirOwnOnGPUs(t *testing.T) {
	if _, err := cuda.GPUs(); err != nil && os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip(err)
	}
	for _, c := range []struct {
		policy, rule string
		team         bool // the ranks of a host are one worker, and the host takes its steps
	}{
		{"averaging, steps: 4", "momentum", false},
		{"averaging, steps: 4", "adam", false},
		{"diloco, steps: 5", "nesterov", false},
		{"hpsgd, steps: 4", "momentum", false},
		{"hpsgd, steps: 4, compensate: 0.04", "sgd", false}, // the host takes these steps
		{"easgd, steps: 5, pull: 0.2", "momentum", false},
		{"streaming_diloco, steps: 4, fragments: 2, delay: 1, keep: 0.25", "momentum", false},
		{"averaging, steps: 5, period: {name: selsync, warm: 0, threshold: 0}", "momentum", false},
		{"averaging, steps: 4", "sgd", true},
	} {
		set := []string{"shards.slice=layer", "local={policy: " + c.policy + "}", "train.optimizer={name: " + c.rule + ", lr: 0.02}"}
		if c.team {
			set = append(set, "cluster.hierarchy=node")
		}
		host, gpu := trainLocally(t, append(set, "device.kind=cpu")...), trainLocally(t, append(set, "device.kind=cuda")...)
		if gpu.code != 0 || host.code != 0 {
			t.Fatalf("%v: codes %d on GPUs and %d on the CPU:\n%s%s", c, gpu.code, host.code, gpu.err, host.err)
		}
		want, got := float64(*host.summary.Evaluations[0].TestLoss), float64(*gpu.summary.Evaluations[0].TestLoss)
		if !near(got, want, 1e-4) {
			t.Errorf("%v: test loss %g on GPUs, %g on the CPU", c, got, want)
		}
	}
	if os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		return
	}
	var copied [2][2]int // by number of steps in a round: bytes to the host, and to the GPU
	for k, steps := range []int{4, 10} {
		file := filepath.Join(t.TempDir(), "copies")
		t.Setenv("CUEMU_COPIES", file)
		if run := trainLocally(t, "device.kind=cuda", fmt.Sprintf("local={policy: averaging, steps: %d}", steps)); run.code != 0 {
			t.Fatalf("code %d:\n%s", run.code, run.err)
		}
		copied[k][0], copied[k][1] = copiedBytes(t, file)
	}
	const bytes = (20*32 + 32 + 32*16 + 16 + 16*10 + 10) * 4
	const workers, more = 2, 20/4 - 20/10 // rounds of a worker
	for k, way := range []string{"to the host", "to the GPUs"} {
		if got := copied[0][k] - copied[1][k]; got != workers*more*bytes {
			t.Errorf("%d rounds more of %d workers copied %d bytes more %s, want %d for each", more, workers, got, way, bytes)
		}
	}
}

func TestWorkersOfAHostTakeOneGPUAfterTheOther(t *testing.T) {
	emulatedOnly(t)
	t.Setenv("CUEMU_DEVICES", "2")
	for _, c := range []struct {
		set     []string
		devices []string
		warning bool
	}{
		{[]string{"device.kind=cuda"}, []string{"GPU 0", "GPU 1"}, false},
		{[]string{"device.kind=auto"}, []string{"GPU 0", "GPU 1"}, false},
		{[]string{"device.kind=cuda", "device.index=1"}, []string{"GPU 1", "GPU 1"}, true},
		{[]string{"device.kind=cuda", "cluster.placement=colocate"}, []string{"GPU 0", "GPU 1", "GPU 0"}, true},
		{[]string{"device.kind=cuda", "cluster.hierarchy=node"}, []string{"GPU 0", "GPU 1"}, false},
	} {
		run := trainLocally(t, c.set...)
		var devices []string
		for _, w := range run.summary.PerWorker {
			devices = append(devices, w.Device)
			for _, m := range w.Members {
				devices = append(devices, m.Device)
			}
		}
		if run.code != 0 || !slices.EqualFunc(devices, c.devices, strings.Contains) {
			t.Errorf("%v: code %d, devices %q, want %q:\n%s", c.set, run.code, devices, c.devices, run.err)
		}
		if strings.Contains(run.out, "they take turns") != c.warning {
			t.Errorf("%v: warned of a shared GPU: %t, want %t:\n%s", c.set, !c.warning, c.warning, run.out)
		}
	}
}

func TestAGPUThatIsNotThere(t *testing.T) {
	emulatedOnly(t)
	run := trainLocally(t, "device.kind=cuda", "device.index=3")
	if run.code != codeUsage || !strings.Contains(run.err, "GPU 3 wanted, 1 visible on ") || run.runJSON != "" {
		t.Errorf("code %d, run.json of %d bytes:\n%s", run.code, len(run.runJSON), run.err)
	}
}

// A GPU that fails ends the run with code 1 and an error that names the GPU and the cause, and that is not called a bug. The
// memory of the GPU is freed only at the end of the process, so each case is a process.
func TestAGPUThatFails(t *testing.T) {
	emulatedOnly(t)
	if os.Getenv("CUEMU_FAIL") != "" {
		run := trainLocally(t, "device.kind=cuda")
		fmt.Printf("%s\ncode %d\n", run.err, run.code)
		return
	}
	for _, c := range []struct{ fail, want string }{
		{"cuDevicePrimaryCtxRetain:1:2", "make a context: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"cuMemAlloc:5", "allocate "},
		{"cuMemAlloc:5", " are free): CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"kernel:40", "CUDA_ERROR_LAUNCH_FAILED (719)"},
		{"cuMemcpyDtoHAsync:20:700", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
	} {
		self := exec.Command(os.Args[0], "-test.run=^TestAGPUThatFails$")
		self.Env = append(os.Environ(), "CUEMU_FAIL="+c.fail)
		out, err := self.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", c.fail, err)
		}
		text := string(out)
		if !strings.Contains(text, "code 1\n") || !strings.Contains(text, "GPU 0 (Emulated GPU 0) on ") || !strings.Contains(text, c.want) {
			t.Errorf("%s: want code 1, and %q in:\n%s", c.fail, c.want, text)
		}
		if strings.Contains(text, "bug in fluentps") {
			t.Errorf("%s is called a bug:\n%s", c.fail, text)
		}
	}
}

// A cuBLAS that does not start ends no run: the worker goes on with our kernels, and the log says why.
func TestARunGoesOnWithoutACuBLASThatDoesNotStart(t *testing.T) {
	emulatedOnly(t)
	t.Setenv("CUEMU_FAIL", "cublasCreate:1")
	run := trainLocally(t, "device.kind=cuda")
	if run.code != 0 {
		t.Fatalf("code %d:\n%s", run.code, run.err)
	}
	if want := `"why":"libcublas.so.12 does not start: cublasCreate returns status 1`; !strings.Contains(run.logs, want) {
		t.Errorf("the log has no %q:\n%s", want, run.logs)
	}
	if want := ": products are computed by our own kernels, because libcublas.so.12 does not start: cublasCreate " +
		"returns status 1"; !strings.Contains(run.out+run.err, want) {
		t.Errorf("there is no warning %q:\n%s%s", want, run.out, run.err)
	}
	if n := strings.Count(run.runJSON, "gemm own)"); n != 1 {
		t.Errorf("%d workers use our own kernels, want the one whose cuBLAS failed:\n%s", n, run.runJSON)
	}
}

// Three ranks on two cores wait for the GPU without polling.
func TestRanksThatOutnumberCoresDoNotPoll(t *testing.T) {
	emulatedOnly(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	t.Setenv("CUEMU_POLL", "no")
	if run := trainLocally(t, "device.kind=cuda"); run.code != 0 {
		t.Errorf("code %d:\n%s", run.code, run.err)
	}
}
