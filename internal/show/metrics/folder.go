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

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
)

// stampLayout is ISO 8601 without colons, because some tools take a name before a colon for a host. Names sort by time.
const stampLayout = "20060102T150405Z"

// foldersPerStamp bounds the search for a free name among runs that start in the same second.
const foldersPerStamp = 100

// FolderSpec says where the files of a run go. Only rank 0 makes folders, because parallel file systems are slow at it.
type FolderSpec struct {
	Root  string    // usually "runs"
	Name  string    // name of the run; a plain file name
	Now   time.Time // start of the run
	JobID string    // ID of the job in the batch system; "" is "local"
	Out   string    // if set, the folder itself (--out): Root, Name, Now and JobID are not used
}

// RunFolder is the folder of one run. It contains logs/, and was empty when the run began.
type RunFolder struct {
	*durable.Folder
	Dir      string
	Warnings []string // about other users that may write the folder, and about the link latest
}

// At opens a run folder that another process has created or opened.
func At(dir string) *RunFolder { return &RunFolder{Folder: durable.Below(dir), Dir: dir} }

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
		if part[1] == "" || part[1] == "." || part[1] == ".." || strings.ContainsAny(part[1], "/\\\x00") || foreign.Visible(part[1]) != part[1] {
			return nil, fmt.Errorf("run folder: %s %q is not a file name; use letters, digits, '-', '_' and '.'", part[0], part[1])
		}
	}
	path := filepath.Join(s.Root, s.Name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, folderError(path, err)
	}
	parent := durable.Below(path)
	defer parent.Close()
	base, err := freeName(parent, s.Now.UTC().Format(stampLayout)+"-"+s.JobID)
	if err != nil {
		return nil, err
	}
	f := &RunFolder{Folder: parent.In(base), Dir: filepath.Join(path, base)}
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, f.linkLatest(parent, base)
}

// begin checks the owner of the folder, and makes logs in it. On an error it closes the folder.
func (f *RunFolder) begin() error {
	err := f.checkOwner()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Make("logs", 0o777); err != nil {
		return errors.Join(folderError(f.Dir, err), f.Close())
	}
	return nil
}

// freeName makes the first folder of stem, stem-2, stem-3, ... that does not exist. Mkdir decides, so two
// runs never share a folder.
func freeName(parent *durable.Folder, stem string) (string, error) {
	for i := 1; i <= foldersPerStamp; i++ {
		base := stem
		if i > 1 {
			base += "-" + strconv.Itoa(i)
		}
		switch err := parent.Make(base, 0o777); {
		case err == nil:
			return base, nil
		case !errors.Is(err, fs.ErrExist):
			return "", folderError(parent.Path(base), err)
		}
	}
	return "", fmt.Errorf("run folder: %d runs named %s already exist in %s; choose a folder with --out",
		foldersPerStamp, stem, parent.Path(""))
}

func createOut(dir string) (*RunFolder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, folderError(dir, err)
	}
	f := At(dir)
	entries, err := f.List()
	if err != nil {
		return nil, errors.Join(folderError(dir, err), f.Close())
	}
	if len(entries) > 0 {
		or := "remove it"
		if IsRunFolder(dir) {
			or = "resume the run in it with --resume " + dir
		}
		return nil, errors.Join(fmt.Errorf("run folder: %s is not empty (it holds %s); a run never overwrites another: "+
			"choose a new folder with --out, or %s",
			dir, foreign.Text(entries[0].Name()), or), f.Close())
	}
	return f, f.begin()
}

// folderError adds to err what the user can do about it.
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

// latestLink is the link of an experiment to its newest run.
const latestLink = "latest"

// linkLatest points parent/latest to base. The rename replaces an older link atomically, so a reader always finds one. It fails
// if latest is not a link, because that file belongs to the user. It only warns if latest is the link of another user in a
// folder where users may replace only their own files.
func (f *RunFolder) linkLatest(parent *durable.Folder, base string) error {
	const link = latestLink
	if info, err := parent.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("run folder: %s is not a link; move it away, or choose a folder with --out", parent.Path(link))
	}
	draft := ".latest." + base
	if err := parent.Symlink(base, draft); err != nil {
		return folderError(parent.Path(link), err)
	}
	switch err := parent.Move(draft, link); {
	case errors.Is(err, fs.ErrPermission):
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s is another user's link and stays as it is; the folder of this "+
			"run is %s", parent.Path(link), f.Dir))
		return parent.Remove(draft)
	case err != nil:
		return errors.Join(folderError(parent.Path(link), err), parent.Remove(draft))
	}
	return nil
}

// Write writes a whole file to the folder. If it fails, an older file of that name is unchanged.
func (f *RunFolder) Write(name string, data []byte) error {
	err := f.Folder.Write(name, data)
	for _, known := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, known) {
			return folderError(f.Dir, err)
		}
	}
	return err
}
