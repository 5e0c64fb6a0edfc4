package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// compiled writes a C source into a folder and runs gcc there.
func compiled(t *testing.T, dir, source, text string, args ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, source), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("gcc", args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("gcc of %s: %v\n%s", source, err, out)
	}
}

// An MPI may itself need the driver: MPICH's layer for GPUs on a Cray, MVAPICH, Open MPI 5. Such a library must get the driver's own
// functions, in a program that is linked with it and with our loader, and that exports its symbols. The program's calls still go
// through the loader.
func TestALibraryThatNeedsTheDriverGetsTheDriver(t *testing.T) {
	for _, tool := range []string{"gcc", "ar", "nm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	if err := build(dir); err != nil {
		t.Fatal(err)
	}
	stub, err := filepath.Abs("stub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "driver"), 0o755); err != nil {
		t.Fatal(err)
	}
	compiled(t, dir, "driver.c", `
int cuInit(unsigned flags) { return flags != 0; }
int cuDriverGetVersion(int *v) { *v = 4242; return 0; }
`, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "driver/libcuda.so.1", "driver.c")
	compiled(t, dir, "mpi.c", `
int cuInit(unsigned);
int cuDriverGetVersion(int *);
int version_in_mpi(void) { int v = 0; return cuInit(0) == 0 && cuDriverGetVersion(&v) == 0 ? v : -1; }
`, "-shared", "-fPIC", "-o", "libmpi.so", "mpi.c", "driver/libcuda.so.1")
	const program = `
#include <cuda.h>
#include <stdio.h>
#include "load.h"
int version_in_mpi(void);
int main(void) {
	int closed = 0, opened = 0;
	int started = cuInit(0), before = cuDriverGetVersion(&closed), mpi = version_in_mpi();
	int code = cuload_open("libcuda.so.1"), after = cuDriverGetVersion(&opened);
	printf("%d %d %d %d %d %d\n", started, before, mpi, code, after, opened);
	return 0;
}
`
	compiled(t, dir, "program.c", program, "-rdynamic", "-Iinclude", "-I"+stub, "-o", "program", "program.c",
		"-Wl,-rpath-link,driver", "-L.", "-lcuda", "-lmpi", "-ldl")
	c := exec.Command("./program")
	c.Dir = dir
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir+":"+filepath.Join(dir, "driver"))
	out, err := c.CombinedOutput()
	if want := "0 3 4242 0 0 4242\n"; err != nil || string(out) != want {
		t.Errorf("error %v, printed %q, want %q", err, out, want)
	}
	symbols, err := output("nm", "-D", "--defined-only", filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	if exported := regexp.MustCompile(`(?m) \w cu\w*$`).FindAllString(symbols, -1); len(exported) > 0 {
		t.Errorf("the program exports %d symbols, such as %q", len(exported), exported[0])
	}
}
