package pack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"fluentps/internal/disk/durable"
)

// scratch are the variables with the folder of a job on the disk of its host, in the order in which they are tried.
var scratch = []string{"SLURM_TMPDIR", "TMPDIR"}

// Scratch is the folder on the disk of this host that the batch system or the user names. environ looks up a variable.
func Scratch(environ func(name string) string) (string, error) {
	for _, name := range scratch {
		if dir := environ(name); dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("data.stage is auto, and neither %s is set: write the folder on the disk of the host, such as data.stage: /scratch",
		strings.Join(scratch, " nor "))
}

// Stage copies a pack into a folder, verifies the copy, and returns its path. One that is there from before, or that another process of the
// host is making, is used: the hash of the index names it. say is told how far the copy is.
func Stage(path, dir string, say func(done, all int64)) (staged string, err error) {
	f, err := Open(path)
	if err != nil {
		return "", err
	}
	size, sum := f.Size, f.SHA256
	defer func() { err = errors.Join(err, f.Close()) }()
	name := "fluentps-" + sum[:32] + ".fps"
	staged = filepath.Join(dir, name)
	folder := durable.Below(dir)
	defer folder.Close()
	if err := folder.Err(); err != nil {
		return "", fmt.Errorf("data.stage: %w; name a folder on the disk of each host", err)
	}
	// whoever holds the lock copies; the others wait, and find the copy
	lock, err := os.OpenFile(staged+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", fmt.Errorf("data.stage: %w; name a folder that you may write, on the disk of each host", err)
	}
	defer lock.Close()
	if err := mine(lock); err != nil {
		return "", err
	}
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			return "", fmt.Errorf("data.stage: lock %s: %w", lock.Name(), err)
		}
	}
	if isThere, err := isStaged(staged, sum, size); err != nil || isThere {
		return staged, err
	}
	return staged, copyTo(folder, name, f, dir, say)
}

// mine fails if a file belongs to somebody else, who could change it.
func mine(f *os.File) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return fmt.Errorf("data.stage: %s: %w", f.Name(), err)
	}
	if int(s.Uid) != os.Geteuid() || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("data.stage: %s is of another user, or no file: name another folder", f.Name())
	}
	return nil
}

// isStaged says whether a copy is there from before.
func isStaged(path, sum string, size int64) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("data.stage: %w; remove it, or name another folder", err)
	}
	defer f.Close()
	if err := mine(f); err != nil {
		return false, err
	}
	p, err := Open(path)
	if err != nil { // of a crash of the host: it is copied again
		return false, nil
	}
	return p.SHA256 == sum && p.Size == size, p.Close()
}

// copyTo copies a pack, and verifies the copy.
func copyTo(folder *durable.Folder, name string, from *File, dir string, say func(done, all int64)) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err == nil {
		if free := int64(s.Bavail) * int64(s.Bsize); free < from.Size+from.Size/100 {
			return fmt.Errorf("data.stage: %s has %d bytes free, and %s has %d: free some, name another folder, or leave out data.stage", dir, free,
				from.Path, from.Size)
		}
	}
	source, err := os.Open(from.Path)
	if err != nil {
		return fmt.Errorf("data.stage: %w", err)
	}
	defer source.Close()
	draft, err := folder.Draft(name)
	if err != nil {
		return fmt.Errorf("data.stage: %w", err)
	}
	err = copied(draft.File, source, from, say)
	if err := draft.End(err); err != nil {
		return fmt.Errorf("data.stage: the copy of %s in %s: %w; free some space, name another folder, or leave out data.stage", from.Path,
			dir, err)
	}
	return nil
}

// copyBytes is how much is copied between two calls of say.
const copyBytes = 16 << 20

func copied(to, source *os.File, from *File, say func(done, all int64)) error {
	for done := int64(0); done < from.Size; {
		n, err := io.CopyN(to, source, min(copyBytes, from.Size-done))
		if done += n; err != nil {
			return err
		}
		say(done, from.Size)
	}
	p, err := Open(to.Name())
	if err != nil {
		return err
	}
	if p.SHA256 != from.SHA256 {
		err = errors.New("it has another index than the pack, which has changed meanwhile")
	}
	return errors.Join(err, p.Verify(), p.Close())
}
