//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kerneltest"
)

// withBLAS returns a device that multiplies with cuBLAS.
func withBLAS(t *testing.T, math string) *device {
	t.Helper()
	d, err := New(firstGPU(t), Options{Gemm: CuBLAS, Math: math})
	if none := (*Unusable)(nil); errors.As(err, &none) && !onlyEmulated {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d.(*device)
}

func TestProductsOfCuBLAS(t *testing.T) {
	d := withBLAS(t, "")
	if !strings.HasSuffix(d.Name(), "gemm cublas "+d.blas.version+")") {
		t.Errorf("Name() = %q", d.Name())
	}
	for _, k := range []*kernels.Kernel{kernels.GemmNN, kernels.GemmNT, kernels.GemmTN} {
		for _, err := range kerneltest.Check(d, k) {
			t.Error(err)
		}
	}
}

// With TF32 the factors are rounded to 10 bits: the product is near the exact one, but differs from it.
func TestProductsInTF32(t *testing.T) {
	d := withBLAS(t, TF32)
	x, y := make([]float32, 64), make([]float32, 64)
	want := 0.0
	for i := range x {
		x[i], y[i] = 1+float32(i)/977, 1+float32(i)/1013
		want += float64(x[i]) * float64(y[i])
	}
	a, err := d.Alloc(64)
	must(t, err)
	b, err := d.Alloc(64)
	must(t, err)
	c, err := d.Alloc(1)
	must(t, err)
	must(t, d.Upload(a, x))
	must(t, d.Upload(b, y))
	must(t, d.Launch(kernels.GemmNN, kernels.Args{V: kernels.Vecs{a, b, c}, N: kernels.Sizes{1, 1, 64}}))
	got := make([]float32, 1)
	must(t, d.Download(got, c))
	off := math.Abs(float64(got[0])-want) / want
	if !(off <= 1e-2) {
		t.Errorf("got %g, want %g within 1e-2", got[0], want)
	}
	if onlyEmulated && off < 1e-7 {
		t.Errorf("got %.9g, which has the precision of float32", got[0])
	}
}

// Without the library, auto uses our kernels, and cublas returns an error that names the missing files.
func TestWithoutCuBLAS(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "message" {
		gpus, err := GPUs()
		must(t, err)
		_, err = New(gpus[0], Options{Gemm: CuBLAS})
		fmt.Printf("error:  %v\n", err)
		d, err := New(gpus[0], Options{Gemm: Auto})
		must(t, err)
		fmt.Printf("device:  %s\n", d.Name())
		must(t, d.Close())
		return
	}
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	driver := filepath.Join(strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")[0], library)
	dir := t.TempDir()
	must(t, os.Symlink(driver, filepath.Join(dir, library)))
	self := exec.Command(os.Args[0], "-test.run=^TestWithoutCuBLAS$")
	self.Env = append(os.Environ(), "FLUENTPS_TEST_CUDA=message", "LD_LIBRARY_PATH="+dir)
	out, err := self.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "error:  "+errNoBLAS.Error()+"\n") || !strings.Contains(string(out), "gemm own)\n") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// A cuBLAS that is there may not start. The next older one takes its place, then our kernels; with cublas, all reasons are the error.
func TestACuBLASThatDoesNotStart(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "message" {
		gpus, err := GPUs()
		must(t, err)
		d, err := New(gpus[0], Options{Gemm: os.Getenv("FLUENTPS_TEST_GEMM"), Math: os.Getenv("FLUENTPS_TEST_MATH")})
		if err != nil {
			fmt.Printf("error: %v\n", err)
			return
		}
		must(t, work(d))
		gpu := d.(*device)
		fmt.Printf("gemm: %s; passed over: %s; weak: %s\n", gpu.gemm(), gpu.PassedOver(), gpu.Weak())
		must(t, d.Close())
		return
	}
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	const status = "does not start: cublasCreate returns status 1, as with a driver that is older than the library"
	const weak = "weak: products are computed by our own kernels, because "
	driver := filepath.Join(strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")[0], library)
	for _, c := range []struct {
		gemm, libraries, fail string // libraries: of these versions, "-" behind one that is no library
		want                  []string
	}{
		{Auto + " " + TF32, "13 12", "cublasCreate:1", []string{"gemm: cublas 12 in tf32; ", "weak: \n"}},
		{Auto + " " + TF32, "", "", []string{"gemm: own; ", "weak: device.math: tf32 has no effect without cuBLAS, and " +
			"found none of libcublas.so.13, "}},
		{Auto + " " + TF32, "12", "cublasCreate:1",
			[]string{"weak: device.math: tf32 has no effect without cuBLAS, and libcublas.so.12 " + status}},
		{Auto, "13 12", "cublasCreate:1", []string{"gemm: cublas 12; passed over: libcublas.so.13 " + status + "; weak: \n"}},
		{CuBLAS, "13 12", "cublasCreate:1", []string{"gemm: cublas 12; passed over: libcublas.so.13 " + status + "; weak: \n"}},
		{Auto, "13- 12- 11", "",
			[]string{"gemm: cublas 11; passed over: libcublas.so.13 does not start: ", "libcublas.so.12: ", "file too short; weak: \n"}},
		{Auto, "13", "cublasCreate:1",
			[]string{"gemm: own; passed over: libcublas.so.13 " + status + "; " + weak + "libcublas.so.13 " + status + "; let LD_LIBRARY_PATH"}},
		{Auto, "12", "cublasSetWorkspace:1", []string{"gemm: own; passed over: libcublas.so.12 does not start: cuBLAS " +
			"returns status 7 when it is set up; " + weak}},
		{Auto, "", "", []string{"gemm: own; passed over: ; weak: \n"}},
		{Auto, "13-", "", []string{"gemm: own; ", "libcublas.so.13: file too short; " + weak}},
		{CuBLAS, "13", "cublasCreate:1", []string{"error: GPU 0 (Emulated GPU 0) on ", ": start cuBLAS: libcublas.so.13 " + status + "\n"}},
	} {
		gemm, math, _ := strings.Cut(c.gemm, " ")
		dir := t.TempDir()
		must(t, os.Symlink(driver, filepath.Join(dir, library)))
		for _, version := range strings.Fields(c.libraries) {
			version, broken := strings.CutSuffix(version, "-")
			file := filepath.Join(dir, "libcublas.so."+version)
			if broken {
				must(t, os.WriteFile(file, nil, 0o644))
			} else {
				must(t, os.Symlink(driver, file))
			}
		}
		self := exec.Command(os.Args[0], "-test.run=^TestACuBLASThatDoesNotStart$")
		self.Env = append(os.Environ(), "FLUENTPS_TEST_CUDA=message", "FLUENTPS_TEST_GEMM="+gemm, "FLUENTPS_TEST_MATH="+
			math, "LD_LIBRARY_PATH="+dir, "CUEMU_FAIL="+c.fail)
		out, err := self.CombinedOutput()
		for _, want := range c.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s, libraries %q, failure %q: error %v, the output has no %q:\n%s", c.gemm, c.libraries, c.fail, err, want, out)
			}
		}
	}
}

func TestFailuresOfCuBLAS(t *testing.T) {
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	for _, c := range []struct{ gemm, fail, want string }{
		{CuBLAS, "cublasCreate:1", "start cuBLAS: libcublas.so.12 does not start: cublasCreate returns status 1, as with " +
			"a driver that is older than the library"},
		{Auto, "cublasSgemm:1", "multiply: cuBLAS status 13"},
	} {
		t.Setenv("CUEMU_FAIL", c.fail)
		d, err := New(firstGPU(t), Options{Gemm: c.gemm})
		if err == nil {
			err = work(d)
			must(t, d.Close())
		}
		failure := (*kernels.Failure)(nil)
		if !errors.As(err, &failure) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.fail, err, c.want)
		}
	}
}
