package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fluentps/ps/durable"
)

// stampLayout is ISO 8601 without colons, which some tools take for host names. Names sort by time.
const stampLayout = "20060102T150405Z"

// foldersPerStamp bounds the search for a free name among runs that start in the same second.
const foldersPerStamp = 100

// FolderSpec says where a run's files go. Only rank 0 makes folders: parallel file systems are slow at it.
type FolderSpec struct {
	Root  string    // usually "runs"
	Name  string    // of the run; a plain file name
	Now   time.Time // start of the run
	JobID string    // of the batch system; "" is "local"
	Out   string    // if set, the folder itself (--out): Root, Name, Now and JobID are not used
}

// RunFolder is the folder of one run; Dir exists, with logs/ in it, and was empty at the start.
type RunFolder struct{ Dir string }

// CreateRunFolder makes Root/Name/<UTC time>-<JobID>/ (with -2, -3, ... if another run has that name) and
// points the link Root/Name/latest to it, or makes Out. An Out that exists must be an empty folder: no run is
// ever overwritten.
func CreateRunFolder(s FolderSpec) (*RunFolder, error) {
	if s.Out != "" {
		return createOut(s.Out)
	}
	if s.JobID == "" {
		s.JobID = "local"
	}
	for _, part := range [][2]string{{"name", s.Name}, {"job id", s.JobID}} {
		if part[1] == "" || part[1] == "." || part[1] == ".." || strings.ContainsAny(part[1], "/\\\x00") {
			return nil, fmt.Errorf("run folder: %s %q is no file name; use letters, digits, '-', '_' and '.'", part[0], part[1])
		}
	}
	parent := filepath.Join(s.Root, s.Name)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, folderError(parent, err)
	}
	base, err := freeName(parent, s.Now.UTC().Format(stampLayout)+"-"+s.JobID)
	if err != nil {
		return nil, err
	}
	f := &RunFolder{Dir: filepath.Join(parent, base)}
	if err := os.Mkdir(filepath.Join(f.Dir, "logs"), 0o777); err != nil {
		return nil, folderError(f.Dir, err)
	}
	return f, linkLatest(parent, base)
}

// freeName makes the first folder of stem, stem-2, stem-3, ... that does not exist. Mkdir decides, so two
// runs never share a folder.
func freeName(parent, stem string) (string, error) {
	for i := 1; i <= foldersPerStamp; i++ {
		base := stem
		if i > 1 {
			base += "-" + strconv.Itoa(i)
		}
		switch err := os.Mkdir(filepath.Join(parent, base), 0o777); {
		case err == nil:
			return base, nil
		case !errors.Is(err, fs.ErrExist):
			return "", folderError(filepath.Join(parent, base), err)
		}
	}
	return "", fmt.Errorf("run folder: %d runs named %s already exist in %s; choose a folder with --out", foldersPerStamp, stem, parent)
}

func createOut(dir string) (*RunFolder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, folderError(dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, folderError(dir, err)
	}
	if len(entries) > 0 {
		or := "remove it"
		if IsRunFolder(dir) {
			or = "go on in it with --resume " + dir
		}
		return nil, fmt.Errorf("run folder: %s is not empty (it holds %s); a run never overwrites another: choose a new folder with --out, or %s",
			dir, entries[0].Name(), or)
	}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o777); err != nil {
		return nil, folderError(dir, err)
	}
	return &RunFolder{Dir: dir}, nil
}

// folderError says what a user can do about err.
func folderError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file or lies below one, not a folder; choose another with --out: %w", dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("run folder: %s cannot be written here; choose a folder that you may write with --out: %w", dir, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("run folder: no space or quota left for %s; free some, or choose another with --out: %w", dir, err)
	}
	return fmt.Errorf("run folder: cannot make %s; choose another with --out: %w", dir, err)
}

// linkLatest points parent/latest to base. The rename replaces an older link at once, so that a reader
// always finds one; anything else of that name is the user's and stays.
func linkLatest(parent, base string) error {
	link := filepath.Join(parent, "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("run folder: %s is not a link; move it away, or choose a folder with --out", link)
	}
	beside := filepath.Join(parent, ".latest."+base)
	if err := os.Symlink(base, beside); err != nil {
		return folderError(link, err)
	}
	if err := os.Rename(beside, link); err != nil {
		return errors.Join(folderError(link, err), os.Remove(beside))
	}
	return nil
}

// Path is the path of a file in the folder.
func (f *RunFolder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Write puts a whole file into the folder, or leaves what was there.
func (f *RunFolder) Write(name string, data []byte) error {
	err := durable.WriteFile(f.Path(name), data)
	for _, known := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, known) {
			return folderError(f.Dir, err)
		}
	}
	return err
}

// Remove takes a file out of the folder, if it is there.
func (f *RunFolder) Remove(name string) error { return durable.Remove(f.Path(name)) }
