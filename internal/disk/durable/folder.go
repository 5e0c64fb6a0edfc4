package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Folder is a folder that others may be able to write, such as a project's folder. It is opened once, and all names are
// looked up from there: a user who renames a folder above it, or puts a link in its place, redirects nothing. No
// existing file is opened for writing, except to append to it, and no symbolic link below the folder is followed. So a
// process changes only files that it has made, whatever others have put into the folder.
type Folder struct {
	path string
	root *os.Root // nil if the folder could not be opened
	err  error
	may  func() error // asked before each change; nil: everything may be changed
}

// Guarded returns the same open folder, which asks before each change whether this process may still make it: before it
// makes, appends to, renames or removes a name. Files that are open already can be written. What is opened below it asks, too.
func (f *Folder) Guarded(may func() error) *Folder {
	return &Folder{path: f.path, root: f.root, err: f.err, may: may}
}

// changeable returns the error with which the folder could not be opened, or why nothing may be changed in it.
func (f *Folder) changeable() error {
	if f.err != nil || f.may == nil {
		return f.err
	}
	return f.may()
}

// Below opens a folder, through symbolic links in its own path. If that fails, all methods return the error.
func Below(path string) *Folder {
	f := &Folder{path: filepath.Clean(path)}
	info, err := os.Stat(f.path) // before OpenRoot, which would wait for a writer of a FIFO
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: syscall.ENOTDIR}
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.path)
	}
	f.err = err
	return f
}

// In opens a subfolder.
func (f *Folder) In(name string) *Folder {
	in := &Folder{path: f.Path(name), may: f.may}
	if in.err = f.refuseSymlinks(name); in.err != nil {
		return in
	}
	info, err := f.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	if err == nil {
		in.root, err = f.root.OpenRoot(name)
	}
	in.err = f.withPaths(err)
	return in
}

// Err returns the error with which the folder could not be opened.
func (f *Folder) Err() error { return f.err }

// Path returns the path of a file in the folder, for messages and for reading; with "" the path of the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Close closes the folder.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// withPaths puts the whole path into an error that names a file below the folder, and the common name of the system
// call.
func (f *Folder) withPaths(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return &fs.PathError{Op: callName(path.Op), Path: f.Path(path.Path), Err: path.Err}
	case errors.As(err, &link):
		return &os.LinkError{Op: callName(link.Op), Old: f.Path(link.Old), New: f.Path(link.New), Err: link.Err}
	}
	return err
}

func callName(op string) string {
	if op == "unlinkat" {
		return "remove"
	}
	return strings.TrimSuffix(op, "at")
}

// refuseSymlinks returns an error if a name is a symbolic link, or lies below one. The system's calls on the root
// already refuse links that lead out of the folder; links within it are refused because no run needs them.
func (f *Folder) refuseSymlinks(name string) error {
	if f.err != nil {
		return f.err
	}
	parts := strings.Split(filepath.Clean(name), string(filepath.Separator))
	for n := range parts {
		at := filepath.Join(parts[:n+1]...)
		if info, err := f.root.Lstat(at); err != nil {
			return nil // the caller's own call fails, too
		} else if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf(
				"%q is a symbolic link, and none is followed here: a user who may write the folder could point it at any file; remove the link",
				f.Path(at))
		}
	}
	return nil
}

// Open opens a regular file for reading.
func (f *Folder) Open(name string) (*os.File, error) {
	if err := f.refuseSymlinks(name); err != nil {
		return nil, err
	}
	return f.regular(f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// ReadFile is the function ReadFile for a file in the folder.
func (f *Folder) ReadFile(name string, most int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, most)
}

// regular is the function regular for a file opened below the folder.
func (f *Folder) regular(file *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, f.withPaths(err)
	}
	return regular(file)
}

// Create makes a file. The error wraps fs.ErrExist if the name exists.
func (f *Folder) Create(name string) (*os.File, error) { return f.create(name, 0) }

// CreateLog is Create for a file that is only appended to.
func (f *Folder) CreateLog(name string) (*os.File, error) { return f.create(name, os.O_APPEND) }

func (f *Folder) create(name string, more int) (*os.File, error) {
	if err := f.refuseSymlinks(filepath.Dir(name)); err != nil {
		return nil, err
	}
	if err := f.changeable(); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|more, 0o666)
	return file, f.withPaths(err)
}

// Renew makes a new file, and removes an old one of that name first.
func (f *Folder) Renew(name string) (*os.File, error) {
	if err := f.refuseSymlinks(filepath.Dir(name)); err != nil {
		return nil, err
	}
	if err := f.Remove(name); err != nil {
		return nil, err
	}
	return f.Create(name)
}

// Append opens a file for reading and appending, and makes it if there is none. It refuses a file with several hard
// links: another of its names may be in a folder of another user.
func (f *Folder) Append(name string) (*os.File, error) {
	if err := f.refuseSymlinks(name); err != nil {
		return nil, err
	}
	if err := f.changeable(); err != nil {
		return nil, err
	}
	file, err := f.regular(f.root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
			err = fmt.Errorf("%q has %d names, by hard links, and must have one to be appended to; remove this one", file.Name(), stat.Nlink)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Beside returns the name under which Write writes before it renames. The next Write of the same name replaces the rest
// of a crash there.
func Beside(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
}

// Write replaces the content of a file. A file has one writer at a time. After an error the old file is there or, if
// only the last sync failed, the new one.
func (f *Folder) Write(name string, data []byte) error {
	return f.Replace(name, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
}

// Replace is Write with the content that fill writes.
func (f *Folder) Replace(name string, fill func(*os.File) error) error {
	d, err := f.Draft(name)
	if err == nil {
		err = d.End(fill(d.File))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Path(name), err)
	}
	return nil
}

// Draft is a new file under another name, which will replace a file.
type Draft struct {
	*os.File
	in           *Folder
	name, beside string
}

// Draft begins a new file for a name.
func (f *Folder) Draft(name string) (*Draft, error) {
	d := &Draft{in: f, name: name, beside: Beside(name)}
	var err error
	d.File, err = f.Renew(d.beside)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// End syncs the file and renames it. It removes the file instead if err is not nil or if a step fails.
func (d *Draft) End(err error) error {
	if err == nil {
		err = d.Sync()
	}
	err = errors.Join(err, d.Close())
	if err == nil {
		err = d.in.Rename(d.beside, d.name)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, d.in.Remove(d.beside))
}

// Abandon removes the file.
func (d *Draft) Abandon() error { return errors.Join(d.Close(), d.in.Remove(d.beside)) }

// Move renames a file or folder, without a sync: a crash of the host may undo it.
func (f *Folder) Move(from, to string) error {
	if err := f.changeable(); err != nil {
		return err
	}
	return f.withPaths(f.root.Rename(from, to))
}

// Rename renames a file or folder, whose data must be synced, and syncs the name. Both names are in one folder.
func (f *Folder) Rename(from, to string) error {
	if err := f.Move(from, to); err != nil {
		return err
	}
	return f.syncNames(filepath.Dir(to))
}

// Link gives a file another name, which must not exist.
func (f *Folder) Link(from, to string) error {
	if err := f.changeable(); err != nil {
		return err
	}
	return f.withPaths(f.root.Link(from, to))
}

// Remove removes a file or an empty folder, if it exists.
func (f *Folder) Remove(name string) error {
	if err := f.changeable(); err != nil {
		return err
	}
	switch err := f.root.Remove(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return f.withPaths(err)
	}
	return f.syncNames(filepath.Dir(name))
}

// RemoveAll removes a folder and all of its content, if it exists.
func (f *Folder) RemoveAll(name string) error {
	if err := f.changeable(); err != nil {
		return err
	}
	return f.withPaths(f.root.RemoveAll(name))
}

// Make makes a folder, which must not exist.
func (f *Folder) Make(name string, mode fs.FileMode) error {
	if err := f.changeable(); err != nil {
		return err
	}
	return f.withPaths(f.root.Mkdir(name, mode))
}

// MakeIn makes a folder, if there is none, and opens it.
func (f *Folder) MakeIn(name string, mode fs.FileMode) *Folder {
	if err := f.Make(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return &Folder{path: f.Path(name), err: err}
	}
	return f.In(name)
}

// Symlink makes a symbolic link in the folder, for users.
func (f *Folder) Symlink(to, name string) error {
	if err := f.changeable(); err != nil {
		return err
	}
	return f.withPaths(f.root.Symlink(to, name))
}

// Lstat describes a name, and follows no link.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	if f.err != nil {
		return nil, f.err
	}
	info, err := f.root.Lstat(name)
	return info, f.withPaths(err)
}

// List returns the entries of the folder, by name.
func (f *Folder) List() ([]fs.DirEntry, error) {
	if f.err != nil {
		return nil, f.err
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, f.withPaths(err)
	}
	defer dir.Close()
	all, err := dir.ReadDir(-1)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// syncNames syncs the names in a folder. File systems that cannot sync a folder return EINVAL; there a rename without a
// sync must do.
func (f *Folder) syncNames(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return f.withPaths(err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
