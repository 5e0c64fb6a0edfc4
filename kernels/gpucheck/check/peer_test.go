//go:build cuda

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fluentps/kernels"
)

// all says that every case is tried, as `make accept` does, and not only one of each kind.
var all = os.Getenv("GPU_CHECK_TEST_ALL") != ""

func needsPython(t *testing.T) {
	t.Helper()
	if err := exec.Command("python3", "-c", "").Run(); err != nil {
		t.Skip("needs python3")
	}
}

// withCuDNN puts the cuDNN of testdata where checks find it.
func withCuDNN(t *testing.T, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-shared", "-fPIC", "-O1", "-o", filepath.Join(dir, "libcudnn.so.9"), "testdata/cudnn.c", "-ldl"}, flags...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	t.Setenv("LD_LIBRARY_PATH", dir+":"+os.Getenv("LD_LIBRARY_PATH"))
}

// peerRows are the rows of PyTorch that must be ok, but for those that are given.
func peerRows(checks []string, but map[string]string) (names []string) {
	for _, check := range checks {
		for _, class := range classes {
			row, trace := fmt.Sprintf("%s, %s: mlp", check, class), fmt.Sprintf("%s by kernel, %s: mlp", check, class)
			_, rowNamed := but[row]
			if _, traceNamed := but[trace]; !rowNamed && !traceNamed {
				names = append(names, trace)
			}
			if !rowNamed {
				names = append(names, row)
			}
		}
	}
	return names
}

// What is broken in PyTorch changes its own rows, and no others: those are there, and ok.
func TestABrokenPyTorchCostsItsOwnRows(t *testing.T) {
	needsPython(t)
	graph, eager, compiled := "PyTorch CUDA graph", "PyTorch eager", "PyTorch compiled"
	for _, c := range []struct {
		what, broken string
		checks       []string
		code         int
		rows         map[string]string
		stderr       string
	}{
		{"in the middle", "compile hangs,TF32;capture crashes,TF32;profiler fails,bf16", []string{graph, compiled}, 1, map[string]string{
			graph + ", TF32: mlp":              "**FAIL**: torchpeer.py: signal: segmentation fault",
			graph + " by kernel, bf16: mlp":    "**FAIL**: RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
			compiled + ", TF32: mlp":           "**over budget**: ended after 2s",
			compiled + " by kernel, bf16: mlp": "**FAIL**: RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
			"ours / PyTorch's best, TF32: mlp": "skipped: no row of PyTorch has a time",
		}, "CUPTI"},
		{"errors", "compile fails,TF32;profiler crashes,float32;no step learns,bf16", []string{compiled}, 1, map[string]string{
			compiled + " by kernel, float32: mlp": "**FAIL**: torchpeer.py: exit status 134",
			compiled + ", TF32: mlp":              "**FAIL**: RuntimeError: BackendCompilerFailed: no such intrinsic",
			compiled + ", bf16: mlp":              "**FAIL**: RuntimeError: the loss did not fall: 2.3000 at first, 2.3000 at last",
			"ours / PyTorch's best, TF32: mlp":    "skipped", "ours / PyTorch's best, bf16: mlp": "skipped",
		}, "BackendCompilerFailed"},
		{"an old PyTorch", "no compile", []string{compiled}, 0, map[string]string{
			compiled + ", float32: mlp":           "skipped: PyTorch 2.11.0 has no torch.compile, which came with 2.0",
			compiled + ", TF32: mlp":              "skipped: PyTorch 2.11.0 has no torch.compile, which came with 2.0",
			compiled + ", bf16: mlp":              "skipped: PyTorch 2.11.0 has no torch.compile, which came with 2.0",
			"ours / PyTorch's best, float32: mlp": "skipped", "ours / PyTorch's best, TF32: mlp": "skipped",
			"ours / PyTorch's best, bf16: mlp": "skipped",
		}, ""},
		{"one for processors", "blind", []string{eager}, 0, map[string]string{
			eager: "skipped: PyTorch 2.11.0 does not see the GPU", eager + ", float32: mlp": "", eager + ", TF32: mlp": "",
			eager + ", bf16: mlp":                 "",
			"ours / PyTorch's best, float32: mlp": "skipped", "ours / PyTorch's best, TF32: mlp": "skipped",
			"ours / PyTorch's best, bf16: mlp": "skipped",
		}, ""},
	} {
		if c.what != "in the middle" && !all {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			worker := filepath.Join(t.TempDir(), "worker")
			t.Setenv("FAKE_TORCH", c.broken)
			t.Setenv("FAKE_TORCH_WORKER", worker)
			o := checked(t, "", "", append(c.checks, "best")...)
			others := peerRows(c.checks, c.rows)
			maps.DeleteFunc(c.rows, func(_, begins string) bool { return begins == "" })
			o.want(t, c.code, c.rows)
			for _, name := range others {
				if o.rows[name] == "" {
					t.Errorf("no row %q:\n%s\n%s", name, o.table, o.stderr)
				}
			}
			if c.stderr != "" && !strings.Contains(o.stderr+o.table, c.stderr) {
				t.Errorf("%q is nowhere:\n%s", c.stderr, o.stderr)
			}
			if strings.Contains(c.broken, "hangs") {
				isGone(t, worker)
			}
		})
	}
}

// isGone checks that a process whose number is in a file has ended.
func isGone(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if _, zombie, err := parentOf(pid); err == nil && !zombie {
		t.Errorf("the worker of a torch.compile that was ended, process %d, lives on", pid)
	}
}

// A PyTorch that cannot be started is one row.
func TestWithoutPyTorch(t *testing.T) {
	for _, c := range []struct {
		what, script string
		code         int
		row          string
	}{
		{"none", `echo "No module named torch" >&2; exit 1`, 0, "skipped: PyTorch is missing: exit status 1: No module named torch"},
		{"one that does not load", `case "$*" in *torchpeer.py*) echo "libcudart.so.13: cannot open" >&2; exit 1 ;; *) echo 2.11 ;; esac`, 1,
			"**FAIL**: torchpeer.py: exit status 1: libcudart.so.13: cannot open"},
		{"one that says nothing", "echo 2.11", 1, "**FAIL**: torchpeer.py: it ended early"},
	} {
		t.Run(c.what, func(t *testing.T) {
			checked(t, "python3", c.script, "eager").want(t, c.code, map[string]string{"PyTorch eager": c.row})
		})
	}
}

// ratios checks the rows of a PyTorch that is whole. A ratio is our time, which is 1 ms for whatever the emulated
// driver times, over PyTorch's, which the clock of the one in testdata gives.
func (o outcome) ratios(t *testing.T) {
	t.Helper()
	for name, has := range map[string]string{
		"PyTorch eager, float32: mlp": "ok: 1.000 ms, PyTorch 2.11.0 3.500 ms: ours / PyTorch 0.29; " +
			"without the optimizer 1.000 ms and 3.000 ms: 0.33; PyTorch's first steps took ",
		"PyTorch compiled, TF32: mlp": "ok: 1.000 ms, PyTorch 2.11.0 1.000 ms: ours / PyTorch 1.00; " +
			"without the optimizer 1.000 ms and 0.750 ms: 1.33; ",
		"PyTorch CUDA graph, bf16: mlp": "ok: 1.000 ms, PyTorch 2.11.0 0.175 ms: ours / PyTorch 5.71; ",
		"PyTorch CUDA graph by kernel, float32: mlp": "ok: convolution 0.350 ms (50 %), norm 0.175 ms (25 %), " +
			"element-wise 0.087 ms (13 %), gap 0.087 ms (12 %) of 0.700 ms; 3 launches, the longest kernel: sm80_",
		"ours / PyTorch's best, float32: mlp": "ok: 1.43 with the optimizer (1.000 ms / 0.700 ms of CUDA graph), 1.67 " +
			"without (1.000 ms / 0.600 ms of CUDA graph); " +
			"PyTorch's ways: CUDA graph, eager, compiled",
		"our step by kernel, float32: mlp": "ok: product 0.",
		"cuDNN, all convolutions of a step": "ok: ours 10.000 ms; float32 10.000 ms, ours / cuDNN 1.00; TF32 10.000 ms, " +
			"ours / cuDNN 1.00; bf16 10.000 ms, ours / cuDNN 1.00",
	} {
		if !strings.HasPrefix(o.rows[name], has) {
			t.Errorf("the row of %s is %q, must begin with %q", name, o.rows[name], has)
		}
	}
	if got := o.rows["ours / PyTorch's best, bf16: mlp"]; !strings.HasSuffix(got, "; ours is in TF32") {
		t.Errorf("the row of bf16 does not say in what our step computes: %q", got)
	}
}

// What is wrong with cuDNN changes its rows. Its second algorithm is the best of the one in testdata: the first one does not run.
func TestCuDNNs(t *testing.T) {
	each := func(row string) map[string]string {
		return map[string]string{"cuDNN, forward: resnet20 conv1": row, "cuDNN, by filter: resnet20 conv1": row,
			"cuDNN, forward: resnet20 group1": row,
			"cuDNN, by data: resnet20 group1": row, "cuDNN, by filter: resnet20 group1": row}
	}
	with := func(rows map[string]string, name, row string) map[string]string {
		rows[name] = row
		return rows
	}
	const whole, check = "cuDNN, all convolutions of a step", "convolutions beside cuDNN"
	one := func(row string) map[string]string { return map[string]string{check: row} }
	for _, c := range []struct {
		what, stub string
		flags      []string // of the compiler
		code       int
		rows       map[string]string
		has        string // in the table
	}{
		{"cuDNN 8", "version:8902", nil, 0,
			with(each("ok: ours 500.00 us; cuDNN 8.9.2; float32 500.000 us ("), whole,
				"ok: ours 10.000 ms; float32 10.000 ms, ours / cuDNN 1.00; TF32 10"),
			"(implicit GEMM, precomputed), ours / cuDNN 1.00; TF32"},
		{"wrong values", "wrong", nil, 1, with(each("**FAIL**: cuDNN 9.10.2 ("), whole, "skipped: a row above has no time"),
			"computes something else: its values are "},
		{"no bf16", "bf16", nil, 0, with(each("ok: "), whole, "ok: "),
			"; bf16 none (cuDNN 9.10.2: describe a convolution: status 9, CUDNN_STATUS_NOT_SUPPORTED)"},
		{"it does not start", "create", nil, 1, one("**FAIL**: cuDNN 9.10.2: start: status 4"), ""},
		{"another version", "version:7605", nil, 0, one("skipped: libcudnn.so.9 is cuDNN 7.6.5, whose calls are not known: needs 8 or 9"), ""},
		{"a call is missing", "", []string{"-DWITHOUT_A_CALL"}, 0, one("skipped: libcudnn.so.9 cannot be used: "),
			"undefined symbol: cudnnFindConvolutionBackwardFilterAlgorithmEx"},
		{"none", "none", nil, 0, one("skipped: found none of libcudnn.so.9 and libcudnn.so.8"), ""},
	} {
		if c.what != "wrong values" && c.what != "a call is missing" && c.what != "none" && !all {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			if c.stub != "none" {
				withCuDNN(t, c.flags...)
			}
			t.Setenv("STUB_CUDNN", c.stub)
			o := checked(t, "python3", "exit 1", "cuDNN")
			o.want(t, c.code, c.rows)
			if !strings.Contains(o.table, c.has) {
				t.Errorf("no %q in the table:\n%s", c.has, o.table)
			}
		})
	}
}

// Every kernel of ours has a kind, and so have those of PyTorch, cuDNN and cuBLAS: names as their profiler prints them.
func TestKindsOfKernels(t *testing.T) {
	for _, k := range kernels.Table {
		if kindOf(k.Name) == otherKind {
			t.Errorf("%s is of no kind", k.Name)
		}
	}
	for name, want := range map[string]string{
		"conv_backward": convolutionKind, "gemm_nt": productKind, "batch_norm_grad": normKind, "momentum": optimizerKind,
		"shortcut_pad": elementKind,
		"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::...)":                                     convolutionKind,
		"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_cudnn":                    convolutionKind,
		"void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int, int, float const*)": convolutionKind,
		"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>":                       convolutionKind,
		"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x64_16x10_nhwc_align4>":                  convolutionKind,
		"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>":                                        normKind,
		"void cudnn::batchnorm_bwtr_nhwc_semiPersist<__nv_bfloat16, float, float, 512, true, 1>":                              normKind,
		"void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var, float, float, 4>":               normKind,
		"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>":  elementKind,
		"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>":                  elementKind,
		"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedSgdMathFunctor<float, 3>>":        optimizerKind,
		"nvjet_sm90_tst_64x64_64x13_1x2_h_bz_TNT":                                                                             productKind,
		"void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>":                productKind,
		"triton_tem_fused_convolution_5":                                          convolutionKind,
		"triton_tem_fused_addmm_relu_2":                                           productKind,
		"triton_red_fused__native_batch_norm_legit_functional_convolution_relu_3": normKind,
		"triton_poi_fused_convolution_backward_threshold_backward_1":              elementKind,
		"Memcpy DtoD (Device -> Device)":                                          copyKind, "Memset (Device)": copyKind,
		"somebody_elses_kernel": otherKind,
	} {
		if got := kindOf(name); got != want {
			t.Errorf("%s is of the kind %s, must be %s", name, got, want)
		}
	}
}

// The times between events hold the events, too. What the same launches take without them is shared out by kernel.
func TestTimesOfEventsAreScaled(t *testing.T) {
	got := scaled([]string{"a", "b", "a"}, []float64{1, 2, 1}, 2)
	if len(got) != 2 || got[0] != (ran{"a", 2, 1}) || got[1] != (ran{"b", 1, 1}) {
		t.Errorf("%v", got)
	}
	if got := scaled([]string{"a"}, []float64{1}, 3); got[0].MS != 1 {
		t.Errorf("a kernel takes %g ms of 1: what is no kernel is no part of it", got[0].MS)
	}
	for _, c := range []struct {
		step, busy float64
		want       string
	}{
		{4, 3, "convolution 2.000 ms (50 %), norm 1.000 ms (25 %), gap 1.000 ms (25 %) of 4.000 ms; 4 launches, the " +
			"longest kernel: conv_forward 2.000 ms (50 %)"},
		{2, 3, "convolution 2.000 ms (100 %), norm 1.000 ms (50 %), gap 0.000 ms (0 %) of 2.000 ms; 4 launches, the " +
			"longest kernel: conv_forward 2.000 ms (100 %)"},
	} {
		if got := sharesOf(c.step, c.busy, []ran{{"conv_forward", 3, 2}, {"batch_norm", 1, 1}}); got != c.want {
			t.Errorf("%s\nmust be\n%s", got, c.want)
		}
	}
}

// PyTorch as it is installed runs the script, too: on the processor, without what only a GPU has.
func TestTheInstalledPyTorchRunsTheScript(t *testing.T) {
	python := "/usr/bin/python3"
	if !all {
		t.Skip("make accept runs it")
	}
	if exec.Command(python, "-c", torchVersion).Run() != nil {
		t.Skip("needs PyTorch for /usr/bin/python3")
	}
	cmd := exec.Command(python, "../../../tests/bench/torchpeer.py", "--device", "cpu", "--seconds", "0.001",
		"--repetitions", "1", "eager,float32,mlp,8", "eager,bf16,lenet,8", "graph,TF32,mlp,8")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs.String())
	}
	for _, line := range []string{`{"case": "eager,float32,mlp,8", "state": "ok", "ms": `,
		`{"case": "eager,bf16,lenet,8", "state": "ok", "ms": `,
		`{"case": "graph,TF32,mlp,8", "state": "skipped", "reason": "a CUDA graph needs a GPU"}`} {
		if !strings.Contains(string(out), "\n"+line) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
}
