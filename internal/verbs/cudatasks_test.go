//go:build cuda

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/show/metrics"
	"fluentps/kernels/cuda"
)

// tasksOnGPUs are a server and three workers with batches of 16.
var tasksOnGPUs = []string{"train.stop={updates: 6}", "evaluate.every_epochs=0", "checkpoint.keep=0",
	"metrics.sinks=[]", "model.layers=[16]", "data={set: generated, rows: 256, test_rows: 32, features: 12}"}

const (
	tasksIterations = 6
	tasksSamples    = tasksIterations * 3 * 16
)

func trainTasks(t *testing.T, device string, set ...string) trainedRun {
	t.Helper()
	run := trainRanks(t, 4, append(append(tasksOnGPUs[:len(tasksOnGPUs):len(tasksOnGPUs)], "device.kind="+device), set...)...)
	if run.code != 0 {
		t.Fatalf("%s, %v: code %d\n%s", device, set, run.code, run.err)
	}
	return run
}

func needGPU(t *testing.T) {
	t.Helper()
	if _, err := cuda.GPUs(); err != nil && os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip(err)
	}
}

// Policies of tasks whose sums do not depend on times compute on GPUs what they compute on the CPU, except for the
// order in which a kernel adds up: kernels for GPUs and libraries for the CPU differ in it. Where a batch is one
// step, and the servers add up whole pushes in the order of workers, a policy has the bits of bsp on the same GPUs.
func TestPoliciesOfTasksTrainOnGPUsAsOnTheCPU(t *testing.T) {
	needGPU(t)
	host, gpu := trainTasks(t, "cpu"), trainTasks(t, "cuda")
	want := float64(*host.summary.Evaluations[0].TestLoss)
	for _, c := range []struct {
		work, sync string
		sameBits   bool
	}{
		{"anytime, time: 1h, micro: 16", "bsp", true},
		{"anytime, time: 1h, micro: 5", "bsp", false}, // the last step has one sample
		{"dropcompute, time: 1h, micro: 16", "bsp", true},
		{"dropcompute, time: 1h", "bsp", false},
		{"partial, load: 2, micro: 16", "drop", true},
		{"partial, load: 3, micro: 16, batching: 2, order: staircase", "drop", true},
		{"partial, load: 2, micro: 4", "drop", false},
		{"coded, micro: 4, code: {kind: fractional, stragglers: 2}", "coded", false},
		{"coded, micro: 4, code: {kind: cyclic, stragglers: 1}", "coded", false},
	} {
		run := trainTasks(t, "cuda", "work={policy: "+c.work+"}", `sync=[{match: "*", scheme: `+c.sync+`}]`)
		if got := float64(*run.summary.Evaluations[0].TestLoss); !near(got, want, 1e-4) ||
			run.summary.Samples != tasksSamples || run.summary.Iterations != tasksIterations {
			t.Errorf("%s: test loss %g after %d samples in %d iterations on GPUs, want %g after %d in %d as on the CPU",
				c.work, got, run.summary.Samples, run.summary.Iterations, want, tasksSamples, tasksIterations)
		}
		if (run.summary.ParametersSHA256 == gpu.summary.ParametersSHA256) != c.sameBits {
			t.Errorf("%s: parameters %.12s, bsp on the same GPUs has %.12s; the same bits: want %t", c.work,
				run.summary.ParametersSHA256, gpu.summary.ParametersSHA256, c.sameBits)
		}
		for _, w := range run.summary.PerWorker {
			if !strings.HasPrefix(w.Device, "cuda (") {
				t.Errorf("%s: worker %d computes on %s", c.work, w.Worker, w.Device)
			}
		}
	}
}

// Where times decide who computes what, every sample is computed on a GPU once all the same: FlexRR and EPSP move
// samples from a slow worker and end, except for the order of additions, where bsp ends. A policy that leaves samples
// out learns from the others.
func TestTasksThatMoveBetweenGPUs(t *testing.T) {
	needGPU(t)
	plain := trainTasks(t, "cuda")
	begins := float64(*trainTasks(t, "cuda", "train.optimizer={name: sgd, lr: 1e-30}").summary.Evaluations[0].TestLoss)
	want := float64(*plain.summary.Evaluations[0].TestLoss)
	for _, c := range []struct {
		work, sync string
		exact      bool // it computes each sample once, for one version an iteration
	}{
		{"flexrr, help: {first: 0.125, next: 0.125}", "bsp", true},
		{"flexrr", "ssp", false},
		{"epsp", "bsp", true},
		{"epsp", "ssp", false},
		{"anytime, time: 10ms", "bsp", false},
		{"dropcompute, time: 10ms", "bsp", false},
		{"dropcompute, profile: 3", "bsp", false}, // the workers choose tau
		{"partial, load: 2, required: 2", "drop, required: 2", false},
		{"coded, code: {kind: cyclic, stragglers: 1, deadline: 10ms}", "coded", false},
	} {
		run := trainTasks(t, "cuda", "work={policy: "+c.work+"}", `sync=[{match: "*", scheme: `+c.sync+`}]`,
			"faults=[{worker: 1, slow: {sleep: 20ms}}]")
		got, s := float64(*run.summary.Evaluations[0].TestLoss), &run.summary
		if c.exact && (!near(got, want, 1e-4) || s.Samples != tasksSamples || s.Iterations != tasksIterations) {
			t.Errorf("%s: test loss %g after %d samples in %d iterations, want %g after %d in %d", c.work, got, s.Samples,
				s.Iterations, want, tasksSamples, tasksIterations)
		}
		if c.exact && s.ParametersSHA256 == plain.summary.ParametersSHA256 {
			t.Errorf("%s: the bits of bsp: no sample of the slow worker has moved", c.work)
		}
		if !(got < begins) || s.Finished != metrics.FinishedOK || s.Samples == 0 {
			t.Errorf("%s under %s: %s, test loss %g after %d samples, at first %g", c.work, c.sync, s.Finished, got, s.Samples, begins)
		}
	}
}

// The steps of an iteration share its parameters: they are copied to a GPU once, and with them each sample once,
// however many steps there are. The gradients of each step are copied to the host, which adds them up.
func TestParametersAreCopiedToAGPUOnceForAllSteps(t *testing.T) {
	emulatedOnly(t)
	const gradients = (12*16 + 16 + 16*10 + 10) * 4
	var toHost, toGPU [2]int // by number of steps
	for k, micro := range []string{"16", "4"} {
		file := filepath.Join(t.TempDir(), "copies")
		t.Setenv("CUEMU_COPIES", file)
		trainTasks(t, "cuda", "work={policy: anytime, time: 1h, micro: "+micro+"}")
		toHost[k], toGPU[k] = copiedBytes(t, file)
	}
	if toGPU[1] != toGPU[0] {
		t.Errorf("with 4 steps %d bytes are copied to the GPUs, with one %d; want as many", toGPU[1], toGPU[0])
	}
	if got, want := toHost[1]-toHost[0], tasksIterations*3*3*gradients; got != want {
		t.Errorf("3 steps more in each iteration of 3 workers copied %d bytes more to the host, want %d", got, want)
	}
}
