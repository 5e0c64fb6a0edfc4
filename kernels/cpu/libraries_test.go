//go:build blas

package cpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fluentps/kernels"
	"fluentps/kernels/gemm"
)

func TestLibrariesAreLookedForByName(t *testing.T) {
	for _, c := range []struct{ wanted, want string }{
		{"openblas", "libopenblas.so.0 libopenblas.so"},
		{"onednn", "libdnnl.so.3 libdnnl.so.2"},
		{"/opt/x/libfoo.so", "/opt/x/libfoo.so"},
	} {
		if files, err := filesOf(c.wanted); err != nil || strings.Join(files, " ") != c.want {
			t.Errorf("%q: %v, error %v, want %s", c.wanted, files, err, c.want)
		}
	}
	if files, err := filesOf(""); err != nil || len(files) != 4 {
		t.Errorf("nothing wanted: %v, error %v, want all four", files, err)
	}
	if _, err := filesOf("mkl"); err == nil ||
		err.Error() != `FLUENTPS_KERNELS_LIBRARY is "mkl", must be onednn, openblas, go, or a file with a / in its name` {
		t.Errorf("an unknown name: error %v", err)
	}
}

// A process chooses once, so each case is a process of its own. It prints its set or its error, and computes a product.
func TestLibrariesOfAProcess(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_SET") != "" {
		var ranks sync.WaitGroup
		d := New(1)
		for range 4 { // the devices of ranks in one process, each with its own threads
			ranks.Go(func() {
				if err := New(3).Launch(kernels.GemmNN, arguments(kernels.GemmNN, kernels.Sizes{300, 300, 30})); err != nil {
					fmt.Println(err)
				}
			})
		}
		ranks.Wait()
		one := kernels.Vec{Host: []float32{3}}
		y := kernels.Vec{Host: []float32{0}}
		err := d.Launch(kernels.GemmNN, kernels.Args{V: kernels.Vecs{one, one, y}, N: kernels.Sizes{1, 1, 1}})
		fmt.Printf("set: %s\nproduct: %g, error %v\nleft: %q\n", Backend(), y.Host[0], err, os.Getenv("OPENBLAS_CORETYPE"))
		return
	}
	junk := filepath.Join(t.TempDir(), "libjunk.so")
	if err := os.WriteFile(junk, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	fake := func(name string, flags ...string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		if out, err := exec.Command("gcc",
			append([]string{"-shared", "-fPIC", "-O1", "-o", file, "testdata/openblas.c"}, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
		return file
	}
	other := filepath.Join(t.TempDir(), "libother.so")
	if out, err := exec.Command("gcc", "-shared", "-o", other, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, c := range []struct {
		what string
		env  []string
		want []string
	}{
		{"a library without locks", []string{LibraryVariable + "=" + fake("libone.so", "-DPARALLEL=0")},
			[]string{"set: OpenBLAS 0.3.99 Haswell", "product: 9"}},
		{"a library with OpenMP",
			[]string{LibraryVariable + "=" + fake("libomp.so", "-DPARALLEL=2", "-fopenmp"), "OMP_NUM_THREADS=4"},
			[]string{"set: OpenBLAS 0.3.99 Haswell", "product: 9"}},
		{"a library with wide integers", []string{LibraryVariable + "=" + fake("libwide.so", "-DPARALLEL=1", "-DWIDE")},
			[]string{"integers of 64 bits; take the build with 32"}},
		{"the default", nil, []string{"set: oneDNN ", "product: 9, error <nil>"}},
		{"OpenBLAS with kernels by flags", []string{LibraryVariable + "=openblas"},
			[]string{"set: OpenBLAS 0.", coreOf(Processor()) + ", own", "product: 9", `left: ""`}},
		{"OpenBLAS as the user chose", []string{LibraryVariable + "=openblas", "OPENBLAS_CORETYPE=PRESCOTT"},
			[]string{" Prescott, own", "product: 9"}},
		{"oneDNN as the user chose", []string{LibraryVariable + "=onednn", "ONEDNN_MAX_CPU_ISA=SSE41"}, []string{" sse4.1, own", "product: 9"}},
		{"a limit for all kernels", []string{LevelVariable + "=none"}, []string{" sse4.1, own none", "product: 9"}},
		{"a limit for all kernels, with OpenBLAS", []string{LevelVariable + "=none", LibraryVariable + "=openblas"},
			[]string{" Nehalem, own none", "product: 9"}},
		{"our twins", []string{LibraryVariable + "=go"}, []string{"set: Go, own", "product: 9"}},
		{"a file that is no library", []string{LibraryVariable + "=" + junk},
			[]string{"not usable: " + LibraryVariable + " is " + junk + ", but " + junk +
				": file too short; name a library that this host has, or unset it", "product: 0, error " + LibraryVariable}},
		{"a missing file", []string{LibraryVariable + "=/nowhere/lib.so"}, []string{"is /nowhere/lib.so, but /nowhere/lib.so: cannot open"}},
		{"another library", []string{LibraryVariable + "=" + other}, []string{"it has neither dnnl_sgemm nor cblas_sgemm"}},
		{"an unknown level", []string{LevelVariable + "=sse9"},
			[]string{`not usable: FLUENTPS_KERNELS_ISA is "sse9", must be none, avx2, avx512`}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := exec.Command(os.Args[0], "-test.run=^TestLibrariesOfAProcess$")
			p.Env = []string{"FLUENTPS_TEST_SET=1"}
			for _, pair := range os.Environ() {
				if name, _, _ := strings.Cut(pair, "="); name == "LD_LIBRARY_PATH" || name == "PATH" || name == "TMPDIR" {
					p.Env = append(p.Env, pair)
				}
			}
			p.Env = append(p.Env, c.env...)
			out, err := p.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if strings.Contains(string(out), "complaint") {
				t.Errorf("the library complains:\n%s", out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}

// Products of any size, whole or cut into tiles, agree with those of the twins.
func TestProductsAreThoseOfTheTwins(t *testing.T) {
	d := New(2).(*device)
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom([]int{1, 7, tileStrip - 1, tileStrip, tileStrip + 1, tileSide, 2*tileSide + 3})
		op := rapid.SampledFrom([]*kernels.Kernel{kernels.GemmNN, kernels.GemmNT, kernels.GemmTN}).Draw(t, "kind")
		n := kernels.Sizes{side.Draw(t, "m"), side.Draw(t, "n"), rapid.IntRange(0, 40).Draw(t, "k")}
		a := arguments(op, n)
		a.F[0] = rapid.SampledFrom([]float32{0, 1, -0.5}).Draw(t, "beta")
		if rapid.Bool().Draw(t, "without bias") {
			a.V[3] = kernels.Vec{}
		}
		want := a
		want.V[2] = kernels.Vec{Host: append([]float32(nil), a.V[2].Host...)}
		op.CPU(want)
		if err := d.Launch(op, a); err != nil {
			t.Fatal(err)
		}
		for i, got := range a.V[2].Host {
			if diff := got - want.V[2].Host[i]; !(diff <= 1e-4 && diff >= -1e-4) {
				t.Fatalf("element %d is %g, the twin has %g", i, got, want.V[2].Host[i])
			}
		}
	})
}

// OpenBLAS's kernels for another processor would end the process at the first product, so Open refuses them.
func TestKernelsBeyondTheProcessorAreRefused(t *testing.T) {
	if Processor() == AVX512 {
		t.Log("this processor can run all kernels of OpenBLAS")
		return
	}
	p := exec.Command(os.Args[0], "-test.run=^TestLibrariesOfAProcess$")
	p.Env = append(os.Environ(), "FLUENTPS_TEST_SET=1", LibraryVariable+"=openblas", "OPENBLAS_CORETYPE=SKYLAKEX")
	out, err := p.CombinedOutput()
	if want := "OPENBLAS_CORETYPE selects OpenBLAS's kernels SkylakeX, which need avx512, but this processor has " +
		Processor().String() + "; unset it"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v; no %q in:\n%s", err, want, out)
	}
}

// A launch returns the failure of the library, whichever thread meets it.
func TestAFailedProductIsAnError(t *testing.T) {
	d := New(3).(*device)
	d.products = func(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) error {
		return fmt.Errorf("status 2 at %d x %d", rows, columns)
	}
	for _, n := range []kernels.Sizes{{2, 2, 2}, {300, 300, 2}} {
		if err := d.Launch(kernels.GemmNN, arguments(kernels.GemmNN, n)); err == nil || !strings.HasPrefix(err.Error(), "status 2") {
			t.Errorf("%v: error %v", n[:3], err)
		}
	}
}

// A library that is out of memory fails as a device does, which is no bug. Any other status of the library is our bug.
func TestALibraryWithoutMemoryIsNoBug(t *testing.T) {
	var device *kernels.Failure
	if err := oneDNNError("a product of 4 x 8 x 16", noMemory); !errors.As(err, &device) ||
		!strings.Contains(err.Error(), "oneDNN: a product of 4 x 8 x 16: the system is out of memory") {
		t.Errorf("no memory: %v", err)
	}
	if err := oneDNNError("a product of 4 x 8 x 16", 2); errors.As(err, &device) || !strings.Contains(err.Error(), "failed with status 2") {
		t.Errorf("another status: %v", err)
	}
}
