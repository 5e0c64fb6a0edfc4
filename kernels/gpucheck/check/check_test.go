//go:build cuda

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
)

// Variables by which a test spoils the device of a check's process.
const (
	spoiltVar = "GPU_CHECK_TEST_SPOILT" // KERNEL,VECTOR,FACTOR: the kernel's vector is scaled behind each launch
	hangVar   = "GPU_CHECK_TEST_HANG"   // KERNEL: its launches do not return
)

func TestMain(m *testing.M) {
	if os.Getenv(gpucheck.CheckVar) == "" {
		os.Exit(m.Run())
	}
	open = func(g cuda.GPU, o cuda.Options) (kernels.Device, error) {
		d, err := cuda.New(g, o)
		if text := os.Getenv(spoiltVar); text != "" && err == nil {
			s := spoilt{Device: d}
			if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", " "), "%s %d %g", &s.kernel, &s.vector, &s.factor); err != nil {
				return nil, err
			}
			return s, nil
		}
		if name := os.Getenv(hangVar); name != "" && err == nil {
			return hanging{d, name}, nil
		}
		return d, err
	}
	main()
}

// spoilt is a device that computes wrong values for one kernel.
type spoilt struct {
	kernels.Device
	kernel string
	vector int
	factor float32
}

func (d spoilt) Launch(k *kernels.Kernel, a kernels.Args) error {
	err := d.Device.Launch(k, a)
	if v := a.V[d.vector]; k.Name == d.kernel && err == nil && v.Len() > 0 {
		err = d.Device.Launch(kernels.Scale, kernels.Args{V: kernels.Vecs{v, v}, N: kernels.Sizes{v.Len()}, F: kernels.Scalars{d.factor}})
	}
	return err
}

type hanging struct {
	kernels.Device
	kernel string
}

func (d hanging) Launch(k *kernels.Kernel, a kernels.Args) error {
	if k.Name == d.kernel {
		time.Sleep(time.Hour)
	}
	return d.Device.Launch(k, a)
}

// around are shell scripts that stand in for the programs around a GPU.
var around = map[string]string{
	"nvidia-smi": `echo "580.1"`,
	"compute-sanitizer": `while [ "${1#--}" != "$1" ]; do shift; shift; done
		exec "$@"`,
	"cuda.test":    `for name in A B C D E F; do echo "--- PASS: Test$name (0.1s)"; done`,
	"program.test": `for name in A B; do echo "--- PASS: Test$name (0.1s)"; done`,
	"python3":      `PYTHONPATH="$GPU_CHECK_TEST_DATA" exec "$GPU_CHECK_TEST_PYTHON" "$@"`, // with the PyTorch of testdata
}

// pythonPath is the Python of this machine: not a script that looks for one, which takes longer than a check.
var pythonPath = sync.OnceValue(func() string {
	said, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return "/nonexistent/python3"
	}
	return strings.TrimSpace(string(said))
})

// python makes the Python of this machine, and the files of testdata, known to the stand-in. Without a Python it is
// as if PyTorch were missing.
func python(t *testing.T, dir string) {
	t.Helper()
	path := pythonPath()
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GPU_CHECK_TEST_PYTHON", path)
	t.Setenv("GPU_CHECK_TEST_DATA", data)
	for _, name := range []string{"torchpeer.py", "torchbench.py"} {
		script, err := filepath.Abs(filepath.Join("../../../tests/bench", name))
		if err == nil {
			err = os.Symlink(script, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// testLimit gives checks six times their budgets, because other programs may have the processor.
const testLimit = time.Hour

// outcome is what gpu-check printed on the emulated driver.
type outcome struct {
	table, stderr string
	code          int
	rows          map[string]string // the outcomes of rows, by name
}

// checked runs the checks that words name, with all programs around the GPU, one of them replaced by another script.
func checked(t *testing.T, replaced, by string, words ...string) (o outcome) {
	t.Helper()
	if os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip("needs the emulated driver")
	}
	dir := t.TempDir()
	python(t, dir)
	for name, body := range around {
		if name == replaced {
			body = by
		}
		if body == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(folderVar, dir)
	var out, errs strings.Builder
	o.code = verdict(&out, &errs, testLimit, words)
	o.table, o.stderr, o.rows = out.String(), errs.String(), map[string]string{}
	for line := range strings.Lines(o.table) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			if cells[1] == "" {
				t.Errorf("no size: %s", line)
			}
			o.rows[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	return o
}

// want checks that these rows begin so, and that all others are ok.
func (o outcome) want(t *testing.T, code int, rows map[string]string) {
	t.Helper()
	failed := o.code != code
	for name, begins := range rows {
		if got, is := o.rows[name]; !is || !strings.HasPrefix(got, begins) {
			t.Errorf("row %q is %q (there: %t), must begin with %q", name, got, is, begins)
			failed = true
		}
	}
	for name, got := range o.rows {
		if _, named := rows[name]; !named && name != "check" && !strings.HasPrefix(got, "ok") {
			t.Errorf("row %q is %q, must be ok", name, got)
			failed = true
		}
	}
	if failed {
		t.Errorf("code %d, must be %d; the table:\n%s\nstandard error:\n%s", o.code, code, o.table, o.stderr)
	}
}

// sayCUDA makes the MPI say that it is CUDA-aware, and opens the emulated GPU's memory to it, which is on the host.
func sayCUDA(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "emulated" {
		name, value, _ := strings.Cut(mpitest.SayCUDA(t, true), "=")
		t.Setenv(name, value)
		t.Setenv("CUEMU_OPEN", "1")
	}
}

// The whole table runs on the emulated driver, with an MPI that says that it is CUDA-aware: every row is ok, and in its place.
func TestTheWholeTableOnTheEmulatedDriver(t *testing.T) {
	needsPython(t)
	sayCUDA(t)
	withCuDNN(t)
	o := checked(t, "", "")
	o.want(t, 0, nil)
	o.ratios(t)
	at := 0
	names := []string{"driver", "clocks", "symbols", "JIT cold and warm", "every kernel against float64",
		"gemm_nn at training sizes", "shortcut_pad_grad at training sizes",
		"long vectors: fill, axpy, momentum", "long vectors: conv_forward, conv_backward_filter",
		"products of cuBLAS, float32", "products of cuBLAS, TF32",
		"gradients of one step", "steps beside the CPU", "copies, events, threads, steady memory", "two workers train as on the CPU",
		"our step, float32: mlp", "our step by kernel, float32: mlp", "our step, TF32: mlp", "our step by kernel, TF32: mlp",
		"PyTorch CUDA graph, float32: mlp", "PyTorch CUDA graph by kernel, float32: mlp", "PyTorch CUDA graph, TF32: mlp",
		"PyTorch CUDA graph, bf16: mlp",
		"cuDNN, forward: resnet20 conv1", "cuDNN, by filter: resnet20 conv1", "cuDNN, by data: resnet20 group1",
		"cuDNN, all convolutions of a step",
		"PyTorch eager, float32: mlp", "PyTorch eager, bf16: mlp", "PyTorch compiled, float32: mlp", "PyTorch compiled by kernel, bf16: mlp",
		"ours / PyTorch's best, float32: mlp", "ours / PyTorch's best, TF32: mlp", "ours / PyTorch's best, bf16: mlp", "mlp, one step",
		"gemm_nn, mlp fc2", "conv_forward, resnet20 group3", "gemm_nt, own", "gemm_nt, cuBLAS", "gemm_nt, cuBLAS in TF32",
		"pinned memory: anonymous", "pinned memory: huge pages", "pinned memory: window",
		"two ranks on one GPU", "CUDA-aware MPI", "compute-sanitizer memcheck", "compute-sanitizer racecheck"}
	for _, name := range names {
		next := strings.Index(o.table[at:], "\n| "+name+" |")
		if next < 0 {
			t.Fatalf("no row %q in its place:\n%s", name, o.table)
		}
		at += next
	}
	for _, k := range kernels.Table {
		if o.rows[k.Name+" at training sizes"] == "" {
			t.Errorf("no row of %s at training sizes", k.Name)
		}
		for _, l := range k.Bench.Layers {
			if got := o.rows[k.Name+", "+l.Name]; !strings.Contains(got, "% of the card") {
				t.Errorf("the row of %s, %s is %q", k.Name, l.Name, got)
			}
		}
	}
}

func TestWhatIsWrongIsARow(t *testing.T) {
	for _, c := range []struct {
		what         string
		env          string // a variable of the checks
		replaced, by string // a program around the GPU
		checks       []string
		code         int
		rows         map[string]string
		stderr       string
	}{
		{"a kernel", spoiltVar + "=batch_norm_grad,2,1.01", "", "",
			[]string{"against float64", "training", "gradients", "long"}, 1, map[string]string{
				"every kernel against float64: batch_norm_grad": "**FAIL**: batch_norm_grad ", "batch_norm_grad at training sizes": "**FAIL**: vector ",
				"gradients of one step": "**FAIL**: 55 of 97 tensors are further than 0.001 from the CPU's, relative to the " +
					"norm; the first ones backward: conv19.weight (64x64x3x3) 0.01,",
			}, "conv1.weight (16x3x3x3)"},
		{"a gradient", spoiltVar + "=conv_backward,4,1.01", "", "", []string{"gradients", "steps beside"}, 1, map[string]string{
			"gradients of one step": "**FAIL**: 18 of 97 tensors are further than 0.001 from the CPU's, relative to the " +
				"norm; the first ones backward: conv19.weight (64x64x3x3) 0.01,",
		}, ""},
		{"losses", spoiltVar + "=gemm_tn,2,9", "", "", []string{"steps beside"}, 1,
			map[string]string{"steps beside the CPU": "**FAIL**: the last "}, ""},
		{"a launch", "CUEMU_FAIL=kernel:9", "", "", []string{"beside the CPU"}, 1,
			map[string]string{"steps beside the CPU": "**FAIL**: model lenet: copy to the host: GPU 0 (Emulated GPU 0) on "}, ""},
		{"pinning", "CUEMU_FAIL=cuMemHostRegister:1:1", "", "", []string{"pinned"}, 1,
			map[string]string{"pinned memory: anonymous": "**FAIL**: GPU 0 "}, ""},
		{"no GPU", "CUEMU_DEVICES=0", "", "", []string{"clocks", "PyTorch"}, 1,
			map[string]string{"driver": "**FAIL**: the driver reports no usable GPU", "clocks": "skipped",
				"PyTorch CUDA graph": "skipped", "PyTorch eager": "skipped", "PyTorch compiled": "skipped", "ours / PyTorch's best": "skipped"}, ""},
		{"a test", "", "cuda.test", `echo "element 3 is 7"; exit 1`, []string{"copies"}, 1,
			map[string]string{"copies, events, threads, steady memory": "**FAIL**: exit status 1"}, "element 3 is 7"},
		{"a test that is skipped", "", "program.test", `printf -- "--- PASS: TestA (0s)\n--- SKIP: TestB (0s)\n"`, []string{"two workers"}, 1,
			map[string]string{"two workers train as on the CPU": "**FAIL**: 1 of them ran and passed"}, "--- SKIP"},
		{"tests that are not there", "", "program.test", "", []string{"two workers"}, 0,
			map[string]string{"two workers train as on the CPU": "skipped: there is no "}, ""},
		{"what a sanitizer finds", "", "compute-sanitizer", `echo "Invalid __global__ write"; exit 9`, []string{"memcheck"}, 1,
			map[string]string{"compute-sanitizer memcheck": "**FAIL**: exit status 9"}, "Invalid __global__ write"},
		{"messages between GPUs", "CUEMU_FAIL=cuMemcpyDtoHAsync:2:700", "", "", []string{"CUDA-aware"}, 1,
			map[string]string{"CUDA-aware MPI": "**FAIL**: cuMemcpyDtoHAsync_v2: CUDA error 700"}, ""},
		{"an MPI that is not CUDA-aware", "", "", "", []string{"MPI"}, 0, map[string]string{"CUDA-aware MPI": "skipped: Open MPI v"}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			if name, value, set := strings.Cut(c.env, "="); set {
				t.Setenv(name, value)
			}
			if c.what == "messages between GPUs" {
				sayCUDA(t)
			}
			o := checked(t, c.replaced, c.by, c.checks...)
			o.want(t, c.code, c.rows)
			if !strings.Contains(o.stderr, c.stderr) {
				t.Errorf("standard error must have %q:\n%s", c.stderr, o.stderr)
			}
		})
	}
}

// counting counts the batches that travel to a device, and the forward passes there.
type counting struct {
	kernels.Device
	batch          int // elements
	batches, steps *int
}

func (d counting) Refresh(v kernels.Vec) error {
	if v.N == d.batch {
		*d.batches++
	}
	return d.Device.Refresh(v)
}

func (d counting) Launch(k *kernels.Kernel, a kernels.Args) error {
	if k == kernels.SoftmaxXent {
		*d.steps++
	}
	return d.Device.Launch(k, a)
}

// The batch of timed steps travels once to each of the two buffers of the model, unless copies are timed, too.
func TestTheBatchOfTimedStepsStays(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") != "emulated" {
		t.Skip("needs the emulated driver")
	}
	s := gpucheck.Emulated
	s.StepTime = time.Nanosecond // several passes
	batches, steps := 0, 0
	whole := open
	defer func() { open = whole }()
	open = func(g cuda.GPU, o cuda.Options) (kernels.Device, error) {
		d, err := cuda.New(g, o)
		return counting{d, s.Batch * (samplesOf("mlp", s).Cols + 1), &batches, &steps}, err
	}
	for _, c := range []struct {
		what string
		time func() (float64, error)
		each bool // step has a copy
	}{
		{"a resident batch", func() (ms float64, err error) {
			err = onDevice(cuda.Options{}, func(d kernels.Device) error {
				step, err := residentStep(d, "mlp", s, true)
				if err == nil {
					ms, err = repeated(s.StepTime, d.Sync, step)
				}
				return err
			})
			return ms, err
		}, false},
		{"alone", func() (float64, error) {
			return stepTime("mlp", s, func(d kernels.Device) kernels.Device { return withoutCopies{newOnce(d)} })
		}, false},
		{"with copies", func() (float64, error) { return stepTime("mlp", s, func(d kernels.Device) kernels.Device { return d }) }, true},
	} {
		batches, steps = 0, 0
		if _, err := c.time(); err != nil {
			t.Fatal(err)
		}
		want := 2
		if c.each {
			want = steps
		}
		if steps < 5 || batches != want {
			t.Errorf("%s: %d copies of a batch in %d steps, must be %d", c.what, batches, steps, want)
		}
	}
}

// A check that hangs is ended when its budget is spent, and those behind it run.
func TestAKernelThatHangs(t *testing.T) {
	whole := table
	defer func() { table = whole }()
	table = slices.Clone(table)
	for i := range table {
		if table[i].Name == "steps beside the CPU" {
			table[i].Budget = time.Second / (testLimit / defaultLimit)
		}
	}
	t.Setenv(hangVar, "conv_forward")
	o := checked(t, "", "", "steps beside", "MPI")
	o.want(t, 1, map[string]string{"steps beside the CPU": "**over budget**: ended after 1s", "CUDA-aware MPI": "skipped"})
}

// The checks find the cuBLAS that came with PyTorch.
func TestCuBLASOfPyTorch(t *testing.T) {
	driver := filepath.Join(strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")[0], "libcuda.so.1")
	dir := t.TempDir()
	packages := filepath.Join(dir, "site-packages", "nvidia", "cublas", "lib")
	if err := os.MkdirAll(packages, 0o755); err != nil {
		t.Fatal(err)
	}
	link := func(path string) {
		if err := os.Symlink(driver, path); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(dir, "libcuda.so.1"))
	t.Setenv("LD_LIBRARY_PATH", dir)
	skipped := "skipped: found none of libcublas.so.13, libcublas.so.12 and libcublas.so.11"
	checked(t, "", "", "of cuBLAS").want(t, 0, map[string]string{"products of cuBLAS": skipped})
	checked(t, "", "", "products by").want(t, 0, map[string]string{"gemm_nt, cuBLAS": skipped, "gemm_nt, cuBLAS in TF32": skipped})
	link(filepath.Join(packages, "libcublas.so.12"))
	checked(t, "python3", "echo "+filepath.Join(dir, "site-packages"), "of cuBLAS").want(t, 0, nil)
}

// The budgets leave the sanitizers some time, and only these have none of their own.
func TestBudgetsFitTheLimit(t *testing.T) {
	total, names := time.Duration(0), map[string]bool{}
	for _, c := range table {
		total += c.Budget
		if (c.Budget == 0) != strings.HasPrefix(c.Name, "compute-sanitizer") {
			t.Errorf("%s has the budget %v", c.Name, c.Budget)
		}
		if names[c.Name] {
			t.Errorf("two checks are called %s", c.Name)
		}
		names[c.Name] = true
	}
	if total+sanitizersMin > defaultLimit-gpucheck.Grace {
		t.Errorf("all budgets are %v: with %v for sanitizers, more than %v", total, sanitizersMin, defaultLimit)
	}
}

func TestWrongUse(t *testing.T) {
	for _, text := range []string{"0", "ten", "1e3", "99999"} {
		if _, err := limitOf(text); err == nil {
			t.Errorf("%s=%s is taken", limitVar, text)
		}
	}
	if limit, err := limitOf("90"); err != nil || limit != 90*time.Second {
		t.Errorf("90 seconds are %v, error %v", limit, err)
	}
	var out, errs strings.Builder
	if code := verdict(&out, &errs, time.Minute, []string{"clocks", "no such check"}); code != 2 ||
		!strings.Contains(errs.String(), "with \"no such check\"; there are:\n") ||
		!strings.Contains(errs.String(), "\n  clocks\n") || out.Len() > 0 {
		t.Errorf("code %d, must be 2\n%s%s", code, out.String(), errs.String())
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self := exec.Command(path)
	self.Env = append(os.Environ(), gpucheck.CheckVar+"=nothing")
	if said, err := self.CombinedOutput(); err == nil || !strings.Contains(string(said), "is \"nothing\", which is no check") {
		t.Errorf("error %v, %s", err, said)
	}
}
