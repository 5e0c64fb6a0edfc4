package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
)

func folderSpec(root string) FolderSpec {
	zone := time.FixedZone("UTC+2", 2*3600)
	return FolderSpec{Root: root, Name: "first", Now: time.Date(2026, 3, 1, 1, 30, 5, 0, zone), JobID: "4711"}
}

func mustFolder(t *testing.T, s FolderSpec) *RunFolder {
	t.Helper()
	f, err := CreateRunFolder(s)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path("logs")); err != nil || !info.IsDir() {
		t.Errorf("logs: %v", err)
	}
	return f
}

func TestCreateRunFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	spec := folderSpec(root)
	want := []string{"20260228T233005Z-4711", "20260228T233005Z-4711-2", "20260228T233005Z-local"}
	for i, base := range want {
		if i == 2 {
			spec.JobID = ""
		}
		f := mustFolder(t, spec)
		if f.Dir != filepath.Join(root, "first", base) {
			t.Errorf("folder %s, want it to end in %s", f.Dir, base)
		}
		if got, err := os.Readlink(filepath.Join(root, "first", "latest")); err != nil || got != base {
			t.Errorf("latest -> %s, %v; want %s", got, err, base)
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "first"))
	if err != nil || len(entries) != 4 {
		t.Errorf("%d entries, %v; want three folders and the link", len(entries), err)
	}
}

// An error of Write in a folder that not even root may write names the way out.
func TestWriteSaysWhatToDo(t *testing.T) {
	f := At("/sys")
	if err := f.Write("run.json", nil); err == nil ||
		!strings.Contains(err.Error(), "run folder: /sys cannot be written here; choose a folder that you may write with "+
			"--out: write /sys/run.json: ") {
		t.Error(err)
	}
}

func TestCreateRunFolderOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f := mustFolder(t, FolderSpec{Out: dir})
	if f.Dir != dir {
		t.Errorf("folder %s, want %s", f.Dir, dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, "..", "latest")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("--out made a latest link: %v", err)
	}
	want := dir + " is not empty (it holds logs); a run never overwrites another: choose a new folder with --out, or " +
		"resume the run in it with --resume " + dir
	if _, err := CreateRunFolder(FolderSpec{Out: dir}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("second run: %v", err)
	}
	if _, err := CreateRunFolder(FolderSpec{Out: filepath.Dir(dir)}); err == nil ||
		!strings.HasSuffix(err.Error(), "(it holds b); a run never overwrites another: choose a new folder with --out, or remove it") {
		t.Errorf("a folder of something else: %v", err)
	}
	mustFolder(t, FolderSpec{Out: t.TempDir()}) // an empty folder that exists is fine
}

func TestCreateRunFolderErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	taken := folderSpec(filepath.Join(dir, "taken"))
	if err := os.MkdirAll(filepath.Join(taken.Root, "first", "latest"), 0o777); err != nil {
		t.Fatal(err)
	}
	named := func(name, job string) FolderSpec {
		s := folderSpec(dir)
		s.Name, s.JobID = name, job
		return s
	}
	for _, c := range []struct {
		spec FolderSpec
		want string
	}{
		{FolderSpec{Out: file}, file + " is a file or lies below one"},
		{FolderSpec{Out: filepath.Join(file, "x")}, "is a file or lies below one"},
		{folderSpec(file), "is a file or lies below one"},
		{taken, filepath.Join("first", "latest") + " is not a link"},
		{named("", "1"), `name "" is not a file name`},
		{named("..", "1"), `name ".." is not a file name`},
		{named("a/b", "1"), `name "a/b" is not a file name`},
		{named("a", "1/2"), `job id "1/2" is not a file name`},
	} {
		if _, err := CreateRunFolder(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want it to contain %q", c.spec, err, c.want)
		}
	}
}

// Read-only and full file systems are hard to come by in a test that may run as root.
func TestFolderErrorsSayTheWayOut(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EROFS: "cannot be written here", syscall.EACCES: "cannot be written here", syscall.EPERM: "cannot be written here",
		syscall.ENOSPC: "no space or quota left", syscall.EDQUOT: "no space or quota left", syscall.EIO: "cannot make",
	} {
		err := folderError("runs/x", &fs.PathError{Op: "mkdir", Path: "runs/x", Err: errno})
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "runs/x") || !errors.Is(err, errno) {
			t.Errorf("%v: %v, want it to contain %q", errno, err, want)
		}
	}
}

func TestFoldersPerStampIsALimit(t *testing.T) {
	parent := durable.Below(t.TempDir())
	for i := range foldersPerStamp {
		got, err := freeName(parent, "s")
		want := "s"
		if i > 0 {
			want = fmt.Sprintf("s-%d", i+1)
		}
		if err != nil || got != want {
			t.Fatalf("folder %d: %s, %v; want %s", i, got, err, want)
		}
	}
	if _, err := freeName(parent, "s"); err == nil || !strings.Contains(err.Error(), "100 runs named s already exist") {
		t.Errorf("error %v", err)
	}
}
