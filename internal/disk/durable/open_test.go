package durable

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenReadsAFileThroughALink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "data"), filepath.Join(dir, "link")
	write(t, path, "data")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	f, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestOpenRefusesOtherThanRegularFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "a folder", fifo: "a FIFO", os.DevNull: "a device"} {
		f, err := Open(path)
		if err == nil {
			f.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; must name %q", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}
