package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNamesAreSortedAndOnce(t *testing.T) {
	list := strings.Fields(names)
	if len(list) < 150 || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("%d names, sorted %t", len(list), slices.IsSorted(list))
	}
	if !slices.Contains(list, "cuDeviceGetUuid_v2") {
		t.Error("cuDeviceGetUuid without _v2 is the same for all slices of a GPU (MIG)")
	}
	if slices.Contains(list, "cuInit") {
		t.Error("cuInit is the loader's own: it must succeed without a driver")
	}
}

func TestHeaderPutsVersionsBack(t *testing.T) {
	text, err := header([]byte("typedef int gone;\n"+firstDeclaration+"\nint cuMemAlloc(void);\n"),
		[]string{"cuCtxGetDevice", "cuMemAlloc_v2", "cuTexRefSetAddress2D_v3"})
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, want := range []string{"#define cuMemAlloc cuMemAlloc_v2\n", "#define cuTexRefSetAddress2D cuTexRefSetAddress2D_v3\n",
		"#define cuMemAlloc fluentps_cuMemAlloc_v2\n", "#define cuCtxGetDevice fluentps_cuCtxGetDevice\n",
		"#define cuInit fluentps_cuInit\n", firstDeclaration + "\nint cuMemAlloc(void);\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the header lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "gone") || strings.Contains(got, "define cuCtxGetDevice cuCtxGetDevice") {
		t.Errorf("the header has declarations that it must not have:\n%s", got)
	}
	if _, err := header([]byte("another header"), nil); err == nil || !strings.Contains(err.Error(), "v0.9.6") {
		t.Errorf("another header: error %v", err)
	}
}

// The header is made from the one in the module, and a wrong header stops the build.
func TestBuild(t *testing.T) {
	if module, err := output("go", "list", "-m", "-f", "{{.Dir}}", "gorgonia.org/cu"); err != nil || strings.TrimSpace(module) == "" {
		t.Skip("gorgonia.org/cu is not downloaded")
	}
	for _, tool := range []string{"gcc", "ar", "nm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	if err := build(dir); err != nil {
		t.Fatal(err)
	}
	symbols, err := output("nm", filepath.Join(dir, "libcuda.a"))
	if err != nil {
		t.Fatal(err)
	}
	defined := []string{"fluentps_cuInit", "cuload_open"}
	for _, name := range strings.Fields(names) {
		defined = append(defined, prefix+name)
	}
	for _, name := range defined {
		if n := len(regexp.MustCompile(` T `+name+`\n`).FindAllString(symbols, -1)); n != 1 {
			t.Errorf("%s is defined %d times", name, n)
		}
	}
	path := filepath.Join(dir, "include", "cuda.h")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), "CUDA_ERROR_LAUNCH_FAILED = 719", "CUDA_ERROR_LAUNCH_FAILED = 720", 1)
	if wrong == string(text) {
		t.Fatal("the header does not say what CUDA_ERROR_LAUNCH_FAILED is")
	}
	if err := os.WriteFile(path, []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := archive(dir); err == nil {
		t.Error("a header with a wrong number was accepted")
	}
}
