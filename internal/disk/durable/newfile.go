package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// NewFile is a file that a user has named, while it is written under a name of its own: several programs may write the same file at once,
// and each that ends leaves a whole one. A Draft has one name, and so one writer at a time.
type NewFile struct {
	*os.File
	path string
}

// CreateNew begins a file that gets its path at End.
func CreateNew(path string) (*NewFile, error) {
	for {
		name := fmt.Sprintf(".%s.%08x.new", filepath.Base(path), rand.Uint32())
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &NewFile{File: f, path: path}, nil
	}
}

// End syncs the file and gives it its path; with replace it takes the place of a file there, and without it fails with
// fs.ErrExist if there is one. If err is not nil, or if a step fails, it removes the file.
func (n *NewFile) End(err error, replace bool) error {
	if err == nil {
		err = n.Sync()
	}
	if err = errors.Join(err, n.Close()); err == nil {
		if err = n.place(replace); err == nil {
			return nil
		}
	}
	return errors.Join(err, os.Remove(n.Name()))
}

func (n *NewFile) place(replace bool) error {
	if !replace {
		err := os.Link(n.Name(), n.path)
		if err == nil {
			return os.Remove(n.Name())
		}
		_, there := os.Lstat(n.path) // for a file system without links
		if errors.Is(err, fs.ErrExist) || there == nil {
			return fmt.Errorf("%s was written by another program meanwhile: %w", n.path, fs.ErrExist)
		}
	}
	return os.Rename(n.Name(), n.path)
}
