// Package durable makes changes of files last over a crash of the process or of its host.
//
// Data is on the disk before a name points to it, and the name is on the disk before the call returns. So a reader finds,
// at any time and after any crash, what was there before or the whole of what replaced it.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Beside is where WriteFile writes before it renames. What a crash leaves there the next WriteFile of path replaces.
func Beside(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
}

// WriteFile puts data into the file of that path, in place of what it held. There is one writer of a path at a time. After
// an error the old file is there, or, where only the last sync failed, the new one.
func WriteFile(path string, data []byte) error {
	beside := Beside(path)
	err := create(beside, data)
	if err == nil {
		err = Rename(beside, path)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write %s: %w", path, err)
	if left := os.Remove(beside); left != nil && !errors.Is(left, fs.ErrNotExist) && !errors.Is(left, syscall.ENOTDIR) {
		err = errors.Join(err, left)
	}
	return err
}

func create(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Rename gives a file or folder, whose data must be synced, its name. Both names are in one folder.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncNames(filepath.Dir(to))
}

// Remove takes a file away, if it is there.
func Remove(path string) error {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return syncNames(filepath.Dir(path))
}

// syncNames syncs the names in a folder. File systems that cannot sync a folder say EINVAL; there the renaming is all that
// can be had.
func syncNames(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
