//go:build blas

package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	if _, err := filesOf("mkl"); err == nil || err.Error() != `FLUENTPS_KERNELS_LIBRARY is "mkl", must be onednn, openblas, go, or a file with a / in its name` {
		t.Errorf("an unknown name: error %v", err)
	}
}

// The choice is made once for a process, so each case is a process of its own, which prints its set or its error, and computes a product.
func TestLibrariesOfAProcess(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_SET") != "" {
		d := New(1)
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
	for _, c := range []struct {
		what string
		env  []string
		want []string
	}{
		{"the default", nil, []string{"set: oneDNN ", "product: 9, error <nil>"}},
		{"OpenBLAS with kernels by flags", []string{LibraryVariable + "=openblas"}, []string{"set: OpenBLAS 0.", coreOf(Processor()) + ", own", "product: 9", `left: ""`}},
		{"OpenBLAS as the user wants it", []string{LibraryVariable + "=openblas", "OPENBLAS_CORETYPE=PRESCOTT"}, []string{" Prescott, own", "product: 9"}},
		{"oneDNN as the user wants it", []string{LibraryVariable + "=onednn", "ONEDNN_MAX_CPU_ISA=SSE41"}, []string{" sse4.1, own", "product: 9"}},
		{"a limit of all", []string{LevelVariable + "=none"}, []string{" sse4.1, own none", "product: 9"}},
		{"a limit of all, with OpenBLAS", []string{LevelVariable + "=none", LibraryVariable + "=openblas"}, []string{" Nehalem, own none", "product: 9"}},
		{"our twins", []string{LibraryVariable + "=go"}, []string{"set: Go, own", "product: 9"}},
		{"a file that is none", []string{LibraryVariable + "=" + junk}, []string{"not usable: no library that multiplies matrices could be opened", "file too short", "install oneDNN", "product: 0, error no library"}},
		{"another library", []string{LibraryVariable + "=./libm.so.6"}, []string{"not usable"}},
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
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}

// Products of any size, whole or cut into tiles, are those of the twins; and those of a tile do not know how many others there are.
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

// A library's failure is the launch's, whichever thread meets it.
func TestAFailedProductIsAnError(t *testing.T) {
	defer New(1)
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
