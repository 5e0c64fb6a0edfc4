package kernels_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gpuPrograms are shell scripts that stand in for the programs which gpu-check starts.
var gpuPrograms = map[string]string{
	"nvidia-smi":        `echo "Some Card, 580.1"`,
	"compute-sanitizer": `echo "    --- PASS: TestConformance/gemm_nn (1.0s)"`,
	"program.test":      `echo PASS`,
	"fluentps":          `echo "the kernels' own times"`,
	"python3":           `case "$*" in *-c*) echo 2.11 ;; *) echo "mlp 128 64000.0" ;; esac`,
	"cuda.test": `case "$*" in
		*BenchmarkStep*) printf 'BenchmarkStep/model=mlp/batch=128/alone-16 9 7 ns/op 0.25 ms/step\nBenchmarkStep/model=mlp/batch=128/copies-16 9 7 ns/op 0.5 ms/step\n' ;;
		*BenchmarkProduct*) printf 'BenchmarkProduct/gemm_nt/1x2x3/own-16 9 7 ns/op 11 GFLOP/s\nBenchmarkProduct/gemm_nt/1x2x3/cublastf32-16 9 7 ns/op 22 GFLOP/s\n' ;;
		*) echo "--- PASS: TestSome (0.1s)" ;;
	esac`,
}

// gpuCheck runs gpu-check with these programs, one of them replaced by another script. It returns the table that gpu-check
// printed, its standard error and its exit code.
func gpuCheck(t *testing.T, replaced, by string, env ...string) (table, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("gpu-check")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("gpu-check", string(script))
	for name, body := range gpuPrograms {
		if name == replaced {
			body = by
		}
		write(name, "#!/bin/sh\n"+body+"\n")
	}
	c := exec.Command("bash", filepath.Join(dir, "gpu-check"))
	c.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), env...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		code = c.ProcessState.ExitCode()
	}
	return out.String(), errs.String(), code
}

func TestGPUCheckPrintsWhatItFound(t *testing.T) {
	table, stderr, code := gpuCheck(t, "", "")
	for _, want := range []string{
		"Some Card, 580.1", "| every kernel against float64 | ok: 1 tests", "| mlp, batch 128, one step | 0.25 ms alone, 0.5 ms with copies, PyTorch 2.11 eager 2.000 ms in float32, 2.000 ms in TF32 |",
		"| gemm_nt/1x2x3, GFLOP/s | own 11, cuBLAS in TF32 22 |", "| compute-sanitizer racecheck | ok: 1 kernels |", "the kernels' own times",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if code != 0 {
		t.Errorf("code %d, must be 0; standard error:\n%s", code, stderr)
	}
	if memory, products := strings.Index(table, "memcheck"), strings.Index(table, "gemm_nt"); memory < products {
		t.Errorf("the sanitizers are at %d, before the products at %d; must be last:\n%s", memory, products, table)
	}
}

func TestGPUCheckShowsWhatFails(t *testing.T) {
	for _, c := range []struct{ what, program, body, want, wantStderr string }{
		{"a test", "cuda.test", `echo "element 3 is 7, want 8"; exit 1`, "| every kernel against float64 | **FAIL**: exit code 1 |", "element 3 is 7, want 8"},
		{"a test that is skipped", "cuda.test", `echo "    --- SKIP: TestConformance (0.0s)"`, "| every kernel against float64 | **FAIL**: skipped |", "SKIP"},
		{"a benchmark without a time", "cuda.test", `echo "--- PASS: TestSome (0.1s)"`, "| mlp, batch 128, one step | **FAIL**: the benchmark printed no time |", "PASS"},
		{"PyTorch", "python3", `case "$*" in *-c*) echo 2.11 ;; *) echo "unrecognized arguments" >&2; exit 2 ;; esac`, "eager **FAIL** in float32, **FAIL** in TF32 |", "unrecognized arguments"},
		{"a sanitizer", "compute-sanitizer", `echo "Invalid __global__ write"; exit 9`, "| compute-sanitizer memcheck | **FAIL**: exit code 9 |", "Invalid __global__ write"},
		{"a program", "fluentps", `echo "no such kernel"; exit 1`, "| bench kernels | **FAIL**: exit code 1 |", "no such kernel"},
	} {
		t.Run(c.what, func(t *testing.T) {
			table, stderr, code := gpuCheck(t, c.program, c.body)
			if code != 1 || !strings.Contains(table, c.want) || !strings.Contains(stderr, c.wantStderr) {
				t.Errorf("code %d, must be 1; the table must have %q, and standard error %q\ntable:\n%s\nstandard error:\n%s", code, c.want, c.wantStderr, table, stderr)
			}
		})
	}
}

// gpu-check ends a program that hangs, and still prints all rows.
func TestGPUCheckEndsInTime(t *testing.T) {
	table, _, code := gpuCheck(t, "cuda.test", "exec sleep 60", "GPU_CHECK_SECONDS=2")
	// On a busy machine, starting alone may take the whole time.
	for _, want := range []string{`\n\| every kernel against float64 \| \*\*FAIL\*\*: (not done after [12]|no time left of 2) s \|`, `\n\| bench kernels \| \*\*FAIL\*\*: no time left of 2 s \|`} {
		if code != 1 || !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("code %d, must be 1; the table has no %s:\n%s", code, want, table)
		}
	}
	for _, c := range []struct{ program, want string }{
		{"nvidia-smi", ", unknown card, "},
		{"python3", "| PyTorch | **FAIL**: does not say in time whether it sees the GPU |"},
	} {
		table, _, code := gpuCheck(t, c.program, "exec sleep 60", "GPU_CHECK_SECONDS=2")
		if code != 1 || !strings.Contains(table, c.want) || !strings.Contains(table, "\n| bench kernels |") {
			t.Errorf("%s hangs: code %d, must be 1; the table must have %q and the kernels:\n%s", c.program, code, c.want, table)
		}
	}
}
