package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// setDirect sets O_DIRECT on the file, and unsetDirect clears it.
func TestDirectIsSetAndTakenBack(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	is := func() bool {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags&unix.O_DIRECT != 0
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	local := fs.Type == unix.EXT4_SUPER_MAGIC || fs.Type == unix.XFS_SUPER_MAGIC
	if set := setDirect(f); set != is() || set && !local {
		t.Errorf("setDirect returned %t, the file has O_DIRECT: %t, its file system is ext4 or xfs: %t", set, is(), local)
	} else if !set {
		t.Skipf("the file system of %s takes no direct writes", f.Name())
	}
	if unsetDirect(f); is() {
		t.Error("the file still has O_DIRECT")
	}
}
