package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// outsideFile is a file outside of the folder that another user wants this process to write.
func outsideFile(t *testing.T) (path string, unchanged func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "treasure")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != "secret" {
			t.Errorf("the file outside has %q, %v", got, err)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Whatever links, hard links and pipes others have put into the folder, no file outside is changed, made, or read.
func TestNothingOutsideIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		attack func(dir, target string) error
		write  func(f *Folder) error
		want   string // part of the error; "": the file is written, and belongs to this process
	}{
		"a link beside a summary": {
			func(dir, target string) error { return os.Symlink(target, filepath.Join(dir, ".x.new")) },
			func(f *Folder) error { return f.Write("x", []byte("data")) }, ""},
		"a link for a summary": {
			func(dir, target string) error { return os.Symlink(target, filepath.Join(dir, "x")) },
			func(f *Folder) error { return f.Write("x", []byte("data")) }, ""},
		"a hard link beside": {
			func(dir, target string) error { return os.Link(target, filepath.Join(dir, ".x.new")) },
			func(f *Folder) error { return f.Write("x", []byte("data")) }, ""},
		"a hard link for a log": {
			func(dir, target string) error { return os.Link(target, filepath.Join(dir, "x")) },
			func(f *Folder) error { return append1(f, "x") }, "has 2 names"},
		"a FIFO for a log": {
			func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "x"), 0o666) },
			func(f *Folder) error { return append1(f, "x") }, "must be a regular file"},
		"a link for a log": {
			func(dir, target string) error { return os.Symlink(target, filepath.Join(dir, "x")) },
			func(f *Folder) error { return append1(f, "x") }, "is a symbolic link"},
		"a link to nothing for a log": {
			func(dir, target string) error { return os.Symlink(target+"-new", filepath.Join(dir, "x")) },
			func(f *Folder) error { return append1(f, "x") }, "is a symbolic link"},
		"a link for the folder of a log": {
			func(dir, target string) error { return os.Symlink(filepath.Dir(target), filepath.Join(dir, "logs")) },
			func(f *Folder) error { return append1(f, "logs/treasure") }, "is a symbolic link"},
		"a link within for the folder of a log": {
			func(dir, target string) error { return os.Symlink(".", filepath.Join(dir, "logs")) },
			func(f *Folder) error { return append1(f, "logs/x") }, "is a symbolic link"},
		"a link for a file that is made": {
			func(dir, target string) error { return os.Symlink(target+"-new", filepath.Join(dir, "x")) },
			func(f *Folder) error { return create1(f, "x") }, "file exists"},
		"a link for the folder of a file that is made": {
			func(dir, target string) error { return os.Symlink(filepath.Dir(target), filepath.Join(dir, "in")) },
			func(f *Folder) error { return create1(f, "in/new") }, "is a symbolic link"},
		"a link for a folder that is opened": {
			func(dir, target string) error { return os.Symlink(filepath.Dir(target), filepath.Join(dir, "in")) },
			func(f *Folder) error { return create1(f.MakeIn("in", 0o777), "new") }, "is a symbolic link"},
		"a FIFO for a folder that is opened": {
			func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "in"), 0o666) },
			func(f *Folder) error { return create1(f.In("in"), "new") }, "not a directory"},
		"a link for a folder that goes": {
			func(dir, target string) error { return os.Symlink(filepath.Dir(target), filepath.Join(dir, "in")) },
			func(f *Folder) error { return f.RemoveAll("in") }, ""},
		"a way out": {
			func(dir, _ string) error { return nil },
			func(f *Folder) error { return create1(f, "../new") }, "escapes"},
		"a link that is read": {
			func(dir, target string) error { return os.Symlink(target, filepath.Join(dir, "x")) },
			func(f *Folder) error { _, err := f.ReadFile("x", 100); return err }, "is a symbolic link"},
		"a FIFO that is read": {
			func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "x"), 0o666) },
			func(f *Folder) error { _, err := f.ReadFile("x", 100); return err }, "is a FIFO, must be a regular file"},
		"a file that is too long": {
			func(dir, _ string) error { return os.Truncate(mustFile(dir), 1<<40) },
			func(f *Folder) error { _, err := f.ReadFile("x", 100); return err }, "more than 100 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target, unchanged := outsideFile(t)
			must(t, c.attack(dir, target))
			f := Below(dir)
			defer f.Close()
			err := c.write(f)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			unchanged()
			if left, err := os.ReadDir(filepath.Dir(target)); err != nil || len(left) != 1 {
				t.Errorf("beside the file outside there is %v, %v", left, err)
			}
			if c.want != "" {
				return
			}
			if data, err := os.ReadFile(filepath.Join(dir, "x")); err == nil && string(data) != "data" {
				t.Errorf("the file has %q", data)
			}
		})
	}
}

func mustFile(dir string) string {
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		panic(err)
	}
	return path
}

func append1(f *Folder, name string) error {
	file, err := f.Append(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, "data")
	return errors.Join(err, file.Close())
}

func create1(f *Folder, name string) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, "data")
	return errors.Join(err, file.Close())
}

// Files go into the folder that was opened, whatever folder has its name by then.
func TestWritesGoToTheFolderThatWasOpened(t *testing.T) {
	root := t.TempDir()
	dir, away, other := filepath.Join(root, "run"), filepath.Join(root, "away"), t.TempDir()
	must(t, os.Mkdir(dir, 0o777))
	f := Below(dir)
	defer f.Close()
	must(t, os.Rename(dir, away), os.Symlink(other, dir))
	in := f.MakeIn("in", 0o777)
	must(t, f.Write("x", []byte("data")), append1(f, "log"), create1(f, "new"), create1(in, "new"), f.Rename("new", "newer"), in.Close())
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("in the other folder there is %v, %v", left, err)
	}
	if left, err := os.ReadDir(away); err != nil || len(left) != 4 {
		t.Errorf("in the folder there is %v, %v", left, err)
	}
}

// A link in the folder's own path is the user's choice; errors give whole paths and common names of system calls.
func TestErrorsNameFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "latest")
	must(t, os.Symlink(dir, link))
	f := Below(link)
	defer f.Close()
	must(t, f.Write("x", nil), os.Mkdir(filepath.Join(dir, "full"), 0o777), os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o666))
	for err, want := range map[error]string{
		create1(f, "none/x"):                "open " + link + "/none/x: no such file or directory",
		f.Remove("full"):                    "remove " + link + "/full: directory not empty",
		f.Rename("none", "new"):             "rename " + link + "/none " + link + "/new: no such file or directory",
		f.Make("x", 0o777):                  "mkdir " + link + "/x: file exists",
		f.In("x").Err():                     "open " + link + "/x: not a directory",
		Below(link + "/x").Err():            "open " + link + "/x: not a directory",
		Below(link+"/none").Write("x", nil): "write " + link + "/none/x: stat " + link + "/none: no such file or directory",
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Below(link + "/none").List(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A log is appended to, read, and truncated.
func TestALogIsAppendedTo(t *testing.T) {
	dir := t.TempDir()
	f := Below(dir)
	defer f.Close()
	must(t, append1(f, "x"), append1(f, "x"))
	file, err := f.Append("x")
	must(t, err)
	defer file.Close()
	must(t, file.Truncate(6))
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, "!"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "x")); string(got) != "datada!" {
		t.Errorf("%q", got)
	}
	fresh, err := f.CreateLog("y")
	must(t, err)
	defer fresh.Close()
	if _, err := f.CreateLog("y"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
}

// OwnerOf returns the owner of a folder, and whether everybody may write it; as root, also for folders of other users.
func TestOwner(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "mine"), 0o755), os.Mkdir(filepath.Join(dir, "all"), 0o755),
		os.Chmod(filepath.Join(dir, "all"), 0o777))
	f := Below(dir)
	defer f.Close()
	for name, public := range map[string]bool{"mine": false, "all": true} {
		if o, err := f.OwnerOf(name); err != nil || !o.Mine || o.Public != public || o.UID != os.Geteuid() {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a folder another user's")
	}
	must(t, os.Chown(filepath.Join(dir, "mine"), 65534, -1))
	for _, o := range []func() (Owner, error){func() (Owner, error) { return f.OwnerOf("mine") }, f.In("mine").Owner} {
		if o, err := o(); err != nil || o.Mine || o.UID != 65534 || !strings.Contains(o.String(), "65534") {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "mine")); err != nil || len(left) > 0 {
		t.Errorf("OwnerOf left %v, %v", left, err)
	}
}
