//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// An MPI that the program is linked with may itself need the driver. It gets the driver's functions: the program exports none of the
// driver's names. The linker exports what a library on its command line needs, so the test links this package anew with one.
func TestOtherLibrariesGetTheDriver(t *testing.T) {
	if os.Getenv("FLUENTPS_TEST_CUDA") == "message" {
		gpus, err := GPUs()
		must(t, err)
		fmt.Printf("ours: GPUs %d\n", len(gpus))
		return
	}
	if !onlyEmulated {
		t.Skip("needs the emulated driver")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mpi.c"), []byte(`
#include <stdio.h>
int cuInit(unsigned);
int cuDriverGetVersion(int *);
int cuDeviceGetCount(int *);
__attribute__((constructor)) static void start(void) {
	int init = cuInit(0), version = 0, count = 0;
	cuDriverGetVersion(&version);
	cuDeviceGetCount(&count);
	printf("MPI's: cuInit %d, version %d, GPUs %d\n", init, version, count);
	fflush(stdout);
}
`), 0o644))
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	driver := filepath.Join(strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")[0], library)
	run("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libmpi_that_needs_cuda.so"), filepath.Join(dir, "mpi.c"), driver)
	tags := "cuda"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				tags = s.Value
			}
		}
	}
	linked := filepath.Join(dir, "linked")
	run("go", "test", "-c", "-vet=off", "-tags", tags, "-ldflags", "-extldflags '-Wl,--no-as-needed -L"+dir+
		" -lmpi_that_needs_cuda -Wl,-rpath,"+dir+"'", "-o", linked, ".")
	if exported := regexp.MustCompile(`(?m) \w cu\w*$`).FindAllString(run("nm", "-D", "--defined-only", linked), -1); len(exported) > 0 {
		t.Errorf("%d symbols are exported, such as %q", len(exported), exported[0])
	}
	self := exec.Command(linked, "-test.run=^TestOtherLibrariesGetTheDriver$")
	self.Env = append(os.Environ(), "FLUENTPS_TEST_CUDA=message", "CUEMU_DEVICES=3", "CUEMU_FAIL=")
	if out, err := self.CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(out), "MPI's: cuInit 0, version 12020, GPUs 3\nours: GPUs 3\n") {
		t.Errorf("%v:\n%s", err, out)
	}
}
