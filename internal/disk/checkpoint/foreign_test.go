package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fluentps/internal/disk/durable"
)

// Symbolic links in the place of checkpoint folders lead no write out of the run folder. Begin removes a partly written checkpoint, but
// not the target of a link with its name.
func TestLinksLeadNoCheckpointAway(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "kept"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	whole := func() {
		t.Helper()
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("outside there is %v, %v", left, err)
		}
	}
	run := durable.Below(t.TempDir())
	if err := os.Symlink(outside, run.Path(Folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(run, "7.1"); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Error(err)
	}
	if err := SetBest(run, Best{Checkpoint: nameOf(1)}); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Error(err)
	}
	whole()
	run = durable.Below(t.TempDir())
	if err := errors.Join(os.Mkdir(run.Path(Folder), 0o777), os.Symlink(outside, run.Path(Folder+"/"+newName)),
		os.Symlink(outside, run.Path(Folder+"/"+oldPrefix+"1"))); err != nil {
		t.Fatal(err)
	}
	d, err := Begin(run, "7.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "server"), d.In.Path("server-0000.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFile(d.In, "server-0000.bin", 1); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	whole()
}

// A file that is not regular is refused at once: reading a FIFO would wait for a writer.
func TestPipesAreNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{manifestName, bestFile, "a.bin"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, manifest := Open(dir)
	_, best := ReadBest(dir)
	_, file := ReadFile(dir, Entry{Name: "a.bin"}, nil)
	for _, err := range []error{manifest, best, file} {
		if err == nil || !strings.Contains(err.Error(), "is a FIFO, must be a regular file") {
			t.Error(err)
		}
	}
}

// Another user may make a folder with the name of a start, with links in it, before a host of this run makes it.
func TestReplicasOfOthersAreNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		attack func(dir, outside string) error
		want   string
	}{
		"a link": {func(dir, outside string) error { return os.Symlink(outside, dir) }, "is a symbolic link"},
		"a file": {func(dir, _ string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
		"a FIFO": {func(dir, _ string) error { return syscall.Mkfifo(dir, 0o600) }, "not a directory"},
		"a folder for all": {func(dir,
			_ string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777))
		}, "it has mode 0777"},
		"another user's folder": {func(dir,
			_ string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, -1))
		}, "was made by another user"},
	} {
		t.Run(name, func(t *testing.T) {
			memory, outside := t.TempDir(), t.TempDir()
			dir := ReplicaDir(memory, "one")
			if err := c.attack(dir, outside); errors.Is(err, os.ErrPermission) {
				t.Skip("only root can make a folder another user's")
			} else if err != nil {
				t.Fatal(err)
			}
			_, hold := HoldReplicas(memory, "one")
			if !errors.Is(hold, os.ErrExist) {
				t.Errorf("held: %v", hold)
			}
			_, open := OpenReplicas(memory, "one")
			_, take := TakeReplicas(memory, "one")
			for _, err := range []error{open, take} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if all := ListReplicas(memory, "one"); all != nil {
				t.Errorf("%+v", all)
			}
			if err := RemoveReplicas(memory, "one"); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); err != nil {
				t.Errorf("it was removed: %v", err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
				t.Errorf("outside there is %v, %v", left, err)
			}
		})
	}
	memory := t.TempDir()
	for range 2 { // the first call makes the folder, the second finds it
		in, err := TakeReplicas(memory, "one")
		if err != nil {
			t.Fatal(err)
		}
		f, err := MakeReplica(in, 3, "a.bin")
		if err := errors.Join(err, f.Close(), WriteReplicaManifest(in, 3, []byte("{}")), in.Close()); err != nil {
			t.Error(err)
		}
	}
	if names := has(t, ReplicaVersion(ReplicaDir(memory, "one"), 3)); len(names) != 2 {
		t.Errorf("%v", names)
	}
}
