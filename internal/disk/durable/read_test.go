package durable

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadFileStopsAtItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	write(t, path, "data")
	if got, err := ReadFile(path, 4); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := ReadFile(path, 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("of a file that is too large: %v", err)
	}
	if _, err := ReadFile("/dev/zero", 3); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("of a device: %v", err)
	}
}

func TestOpenStreamAcceptsPipesOfTheProcess(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fmt.Fprint(w, "data")
	w.Close()
	f, err := OpenStream(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStream(fifo); err == nil || !strings.Contains(err.Error(), "a FIFO") {
		t.Errorf("of a FIFO with a name: %v", err)
	}
}

// A path that only begins like a stream of the process is treated like any other: opening a FIFO does not wait, and no
// device is read.
func TestOpenStreamRefusesOtherSpellings(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/fd/../../.." + fifo, "/dev/fd//../../.." + fifo, "/dev/fd/0/../../../.." + fifo,
		"/dev/fd/../../../dev/zero", "/dev/fd/", "/dev/fd/0x", "/dev/fd/+0", "/dev/stdin/../zero"} {
		done := make(chan error, 1)
		go func() {
			f, err := OpenStream(path)
			if err == nil {
				f.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s was opened", path)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s blocks", path)
			if w, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil { // otherwise the goroutine never ends
				w.Close()
			}
		}
	}
}
