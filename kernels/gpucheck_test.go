package kernels_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gpuCheck runs a copy of gpu-check beside a program with this text; none if it is empty. With a Makefile, the copy is in a clone.
func gpuCheck(t *testing.T, program, makefile string, args ...string) (said string, code int) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("gpu-check")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if text == "" {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("kernels/gpu-check", string(script))
	write("kernels/check", program)
	write("Makefile", makefile)
	c := exec.Command(filepath.Join(dir, "kernels", "gpu-check"), args...)
	out, err := c.CombinedOutput()
	if err != nil {
		code = c.ProcessState.ExitCode()
	}
	return string(out), code
}

// gpu-check starts the program beside it with its arguments, and passes its exit code on. In a clone it builds the program first.
func TestGPUCheckStartsTheProgram(t *testing.T) {
	const program = "#!/bin/sh\necho \"it ran $1 $2\"\nexit 1\n"
	const builds = "gpu-test-bins:\n\tmkdir -p build/gpu\n\tprintf '#!/bin/sh\\necho built; exit 1\\n' " +
		">build/gpu/check\n\tchmod +x build/gpu/check\n"
	for _, c := range []struct {
		what, program, makefile, want string
		code                          int
	}{
		{"beside it", program, builds, "it ran symbols the MPI\n", 1},
		{"to be built", "", builds, "\nbuilt\n", 1},
		{"not to be built", "", "gpu-test-bins:\n\tfalse\n", "make gpu-test-bins makes it\n", 2},
		{"not there", "", "", "make gpu-test-bins makes it\n", 2},
	} {
		if said, code := gpuCheck(t, c.program, c.makefile, "symbols", "the MPI"); code != c.code || !strings.HasSuffix(said, c.want) {
			t.Errorf("%s: code %d, must be %d; it said %q, must end with %q", c.what, code, c.code, said, c.want)
		}
	}
}
