package shm

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// createUnnamed makes a file that never had a name. Before Linux 3.11 tmpfs could not.
func createUnnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return createUnlinked(dir)
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir, "fluentps-window")), nil
}

// Name gives a file made by Create a name. Nothing may be at the path, and the caller removes the name again.
func Name(f *os.File, path string) error {
	at := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if err := unix.Linkat(unix.AT_FDCWD, at, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}

// stepBytes are allocated at once. A signal interrupts fallocate and undoes the step under way, so that a long step
// might never end.
const stepBytes = 64 << 20

// allocate allocates pages and leaves the file's length as it is. If the file system cannot, the error is
// errors.ErrUnsupported.
func allocate(f *os.File, bytes int64) error {
	for at := int64(0); at < bytes; {
		switch err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, at, min(bytes-at, stepBytes)); {
		case err == nil:
			at += stepBytes
		case !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
		}
	}
	return nil
}

func freeBytes(f *os.File) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: f.Name(), Err: err}
	}
	if fs.Blocks == 0 { // a tmpfs without a limit
		return 1 << 62, nil
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil // the types of both differ by processor
}
