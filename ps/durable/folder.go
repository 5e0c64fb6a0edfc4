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

// Folder is a folder in which others may be able to write, as a colleague may in that of a project. It is opened once, and all
// names are looked up from there: whoever renames a folder above it, or puts a link in its place, leads nobody away. No file
// that is there already is opened for writing but one to append to, and no symbolic link below it is followed. So a process
// changes no file but those that it made, whatever others have put into the folder.
type Folder struct {
	path string
	root *os.Root // nil: there is none, as err says
	err  error
}

// Below opens a folder, through symbolic links in its own path. Where that fails, all that is asked of it fails alike.
func Below(path string) *Folder {
	f := &Folder{path: filepath.Clean(path)}
	info, err := os.Stat(f.path) // before it is opened, which would wait for a writer of a FIFO
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: syscall.ENOTDIR}
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.path)
	}
	f.err = err
	return f
}

// In opens a folder below it.
func (f *Folder) In(name string) *Folder {
	in := &Folder{path: f.Path(name)}
	if in.err = f.unlinked(name); in.err != nil {
		return in
	}
	info, err := f.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	if err == nil {
		in.root, err = f.root.OpenRoot(name)
	}
	in.err = f.named(err)
	return in
}

// Err says why the folder could not be opened.
func (f *Folder) Err() error { return f.err }

// Path is the path of a file in the folder, for messages and for who only reads it; of "" that of the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Close lets go of the folder.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// named puts paths into errors that name a file below the folder, and the names of calls that people know.
func (f *Folder) named(err error) error {
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

// unlinked refuses a name that is a symbolic link, or lies below one. Of those that lead out of the folder the system's calls
// below take none either; those that stay in it are refused because nobody needs them.
func (f *Folder) unlinked(name string) error {
	if f.err != nil {
		return f.err
	}
	parts := strings.Split(filepath.Clean(name), string(filepath.Separator))
	for n := range parts {
		at := filepath.Join(parts[:n+1]...)
		if info, err := f.root.Lstat(at); err != nil {
			return nil // whoever asked finds out
		} else if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%q is a symbolic link, and none is followed here: whoever may write the folder could lead it to any file; remove the link", f.Path(at))
		}
	}
	return nil
}

// Open opens a regular file for reading.
func (f *Folder) Open(name string) (*os.File, error) {
	if err := f.unlinked(name); err != nil {
		return nil, err
	}
	return f.regular(f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// ReadFile is ReadFile of a file in the folder.
func (f *Folder) ReadFile(name string, most int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, most)
}

// regular is regular of a file that was opened below the folder.
func (f *Folder) regular(file *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, f.named(err)
	}
	return regular(file)
}

// Create makes a file, which must not be there.
func (f *Folder) Create(name string) (*os.File, error) { return f.create(name, 0) }

// CreateLog makes a file, which must not be there, to be written at its end only.
func (f *Folder) CreateLog(name string) (*os.File, error) { return f.create(name, os.O_APPEND) }

func (f *Folder) create(name string, more int) (*os.File, error) {
	if err := f.unlinked(filepath.Dir(name)); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|more, 0o666)
	return file, f.named(err)
}

// Renew makes a file anew: one of that name goes.
func (f *Folder) Renew(name string) (*os.File, error) {
	if err := f.unlinked(filepath.Dir(name)); err != nil {
		return nil, err
	}
	if err := f.Remove(name); err != nil {
		return nil, err
	}
	return f.Create(name)
}

// Append opens a file for reading, and for writing at its end, and makes it where there is none. One with several names is
// refused: another of them may be in a folder where it is worth more.
func (f *Folder) Append(name string) (*os.File, error) {
	if err := f.unlinked(name); err != nil {
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

// Beside is where Write writes before it renames. What a crash leaves there the next Write of that name replaces.
func Beside(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
}

// Write puts data into a file, in place of what that held. There is one writer of a file at a time. After an error the old
// file is there, or, where only the last sync failed, the new one.
func (f *Folder) Write(name string, data []byte) error {
	return f.Replace(name, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
}

// Replace is Write of what fill writes.
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

// Draft is a file that is written beside the one which it will replace.
type Draft struct {
	*os.File
	in           *Folder
	name, beside string
}

// Draft begins the file that will get a name.
func (f *Folder) Draft(name string) (*Draft, error) {
	d := &Draft{in: f, name: name, beside: Beside(name)}
	var err error
	d.File, err = f.Renew(d.beside)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// End syncs the file and gives it its name, or removes it where something went wrong before or does now.
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

// Abandon gives the file up.
func (d *Draft) Abandon() error { return errors.Join(d.Close(), d.in.Remove(d.beside)) }

// Move renames a file or folder, for as long as the host runs.
func (f *Folder) Move(from, to string) error {
	if f.err != nil {
		return f.err
	}
	return f.named(f.root.Rename(from, to))
}

// Rename gives a file or folder, whose data must be synced, its name. Both names are in one folder.
func (f *Folder) Rename(from, to string) error {
	if err := f.Move(from, to); err != nil {
		return err
	}
	return f.syncNames(filepath.Dir(to))
}

// Link gives a file another name, which nothing may have.
func (f *Folder) Link(from, to string) error {
	if f.err != nil {
		return f.err
	}
	return f.named(f.root.Link(from, to))
}

// Remove takes a file or an empty folder away, if it is there.
func (f *Folder) Remove(name string) error {
	if f.err != nil {
		return f.err
	}
	switch err := f.root.Remove(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return f.named(err)
	}
	return f.syncNames(filepath.Dir(name))
}

// RemoveAll takes a folder and all that is in it away, if it is there.
func (f *Folder) RemoveAll(name string) error {
	if f.err != nil {
		return f.err
	}
	return f.named(f.root.RemoveAll(name))
}

// Make makes a folder, which must not be there.
func (f *Folder) Make(name string, mode fs.FileMode) error {
	if f.err != nil {
		return f.err
	}
	return f.named(f.root.Mkdir(name, mode))
}

// MakeIn makes a folder where there is none, and opens it.
func (f *Folder) MakeIn(name string, mode fs.FileMode) *Folder {
	if err := f.Make(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return &Folder{path: f.Path(name), err: err}
	}
	return f.In(name)
}

// Symlink makes a symbolic link in the folder, for people.
func (f *Folder) Symlink(to, name string) error {
	if f.err != nil {
		return f.err
	}
	return f.named(f.root.Symlink(to, name))
}

// Lstat tells of a name, and follows no link.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	if f.err != nil {
		return nil, f.err
	}
	info, err := f.root.Lstat(name)
	return info, f.named(err)
}

// List gives what is in the folder, by name.
func (f *Folder) List() ([]fs.DirEntry, error) {
	if f.err != nil {
		return nil, f.err
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, f.named(err)
	}
	defer dir.Close()
	all, err := dir.ReadDir(-1)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// syncNames syncs the names in a folder. File systems that cannot sync a folder say EINVAL; there the renaming is all that
// can be had.
func (f *Folder) syncNames(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return f.named(err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
