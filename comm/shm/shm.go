// Package shm takes memory of a host that is a file: what ranks of one host share, and copies of checkpoints.
//
// The memory file system of a host belongs to all of its jobs. Room that it says to have may be gone a moment later, and a page
// that is mapped but not there ends the process with SIGBUS when it is touched. So all pages of a file are taken at once, before
// anything is mapped or written, and whoever gets no room learns so by an error.
package shm

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is the memory file system of a host.
const Dir = "/dev/shm"

// Spare is what is left free there for each process of a host, in bytes. MPI libraries map files of their own without taking the
// pages, and die where one of these finds no room: Open MPI has 4 MiB of each rank.
const Spare = 4 << 20

// Create makes a file of so many zero bytes without a name, which goes when the last process that has it open or mapped ends,
// however it ends. It has all of its pages, and spare bytes were free beside them.
func Create(dir string, bytes, spare int64) (*os.File, error) {
	f, err := unnamed(dir)
	if err != nil {
		return nil, err
	}
	if err = left(f, bytes+spare); err == nil { // what is not there is not taken from others for a moment either
		err = allocate(f, bytes)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = fill(f, bytes)
	}
	if err == nil {
		err = left(f, spare) // others may have taken room meanwhile
	}
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reserve takes the pages of an empty file that is to be written, so many bytes, and leaves its length as it is. If they or the
// spare ones beside them are not there, it takes none, and the error wraps ENOSPC. A file system that takes nothing in advance
// tells when the file is written.
func Reserve(f *os.File, bytes, spare int64) error {
	err := left(f, bytes+spare)
	if err == nil {
		err = allocate(f, bytes)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err == nil {
		err = left(f, spare)
	}
	if err != nil {
		return errors.Join(err, f.Truncate(0)) // which gives pages behind the end back, too
	}
	return nil
}

// left says by ENOSPC that less than so many bytes are free in a file's file system. Of several processes that take room at one
// time the last one to ask sees what all of them took.
func left(f *os.File, spare int64) error {
	free, err := freeBytes(f)
	if err == nil && free < spare {
		err = &os.PathError{Op: "reserve", Path: filepath.Dir(f.Name()), Err: syscall.ENOSPC}
	}
	return err
}

// removed makes a file and takes its name away, before it has a byte that a crash could leave behind.
func removed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "fluentps-window-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fill takes the pages by writing, which any file system can.
func fill(f *os.File, bytes int64) error {
	zeros := make([]byte, min(bytes, 1<<20))
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}
