package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := WriteFile(path, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "summary.json")
	for _, data := range []string{"first, and longer", "second"} {
		write(t, path, data)
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("read %q, %v; want %q", got, err, data)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files, want 1: no other file may be left", len(entries))
	}
}

// A reader that has the old file open keeps all of it: the new one is another file.
func TestWriteFileDoesNotOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	write(t, path, "old")
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	write(t, path, "new")
	buf := make([]byte, 8)
	if n, err := old.Read(buf); err != nil || string(buf[:n]) != "old" {
		t.Errorf("the open file reads %q, %v; want old", buf[:n], err)
	}
}

// The rest of a crash, longer than the new content, is no part of the new file.
func TestWriteFileAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(Beside(path), []byte("half of something long"), 0o666); err != nil {
		t.Fatal(err)
	}
	write(t, path, "short")
	if got, _ := os.ReadFile(path); string(got) != "short" {
		t.Errorf("read %q, want short", got)
	}
}

func TestWriteFileErrorsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v, want fs.ErrNotExist", err)
	}
	path := filepath.Join(dir, "x")
	if err := os.MkdirAll(filepath.Join(path, "y"), 0o777); err != nil { // a folder blocks the rename
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("data")); err == nil || !strings.Contains(err.Error(), "write "+path) {
		t.Errorf("a folder of that name: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d entries, want only the folder", len(entries))
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	write(t, path, "short")
	for range 2 { // the second call finds nothing to remove
		if err := Below(dir).Remove("x"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("still there: %v", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(path, "y"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Below(dir).Remove("x"); err == nil {
		t.Error("a folder with a file in it was removed")
	}
}

func TestRenameOfAFolder(t *testing.T) {
	dir := t.TempDir()
	f := Below(dir)
	if err := os.MkdirAll(f.Path("from/x"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename("from", "to"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Path("to/x")); err != nil {
		t.Error(err)
	}
	if err := f.Rename("from", "to"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("again: %v, want fs.ErrNotExist", err)
	}
}
