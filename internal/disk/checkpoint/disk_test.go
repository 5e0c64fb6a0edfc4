package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The error of a failing disk differs from that of a full or read-only one, on writing and on reading.
func TestADiskThatFailsIsNamed(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
		err := writeError(&os.PathError{Op: "write", Path: "server-0000.bin", Err: errno})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), "the file system of the run folder fails; ask its "+
			"administrator, and resume from a copy elsewhere with --resume") {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("/proc/self/mem", filepath.Join(dir, manifestName)); err != nil { // its first byte cannot be read
		t.Fatal(err)
	}
	if _, err := os.ReadFile("/proc/self/mem"); !errors.Is(err, syscall.EIO) {
		t.Skipf("this system has no file that cannot be read: %v", err)
	}
	if m, err := Open(dir); m != nil || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), manifestName) {
		t.Errorf("%v, %v", m, err)
	}
}
