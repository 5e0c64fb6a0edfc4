package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Open MPI makes files for the ranks of a host in the memory file system. They stay if launcher and ranks are killed. So the
// ranks of a start that has a token let it make them in a folder that names the start, and a later start can remove what
// earlier ones have left, and nothing else.

// scratchPrefix begins the names of such folders; behind it stand the user and the token.
const scratchPrefix = "fluentps-mpi-"

// scratchName is the name of the folder of a start.
func scratchName(start string) string {
	return fmt.Sprintf("%s%d-%s", scratchPrefix, os.Getuid(), start)
}

// MakeScratch makes the folder of a start in root, or finds the one that another rank has made. It fails, and names no folder, if
// another user has made it: who knows the number of a job can do that before the job starts.
func MakeScratch(root, start string) (dir string, err error) {
	dir = filepath.Join(root, scratchName(start))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := checkScratch(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// checkScratch returns an error unless a name is a folder of this user that no other user may write.
func checkScratch(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only this user may write", dir)
	}
	return nil
}

// RemoveScratch removes the folders of starts in root that are over, with all that was left in them.
func RemoveScratch(root string, isOver func(start string) bool) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var problems []error
	for _, e := range entries {
		start, ours := strings.CutPrefix(e.Name(), scratchName(""))
		if dir := filepath.Join(root, e.Name()); ours && isOver(start) && checkScratch(dir) == nil {
			problems = append(problems, os.RemoveAll(dir))
		}
	}
	return errors.Join(problems...)
}
