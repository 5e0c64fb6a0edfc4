// Package shm allocates memory of a host as files: memory that ranks of one host share, and copies of checkpoints.
//
// All jobs of a host share its memory file system. Space that it reports as free may be gone a moment later, and a
// process that touches a mapped page without memory behind it ends with SIGBUS. So all pages of a file are allocated at
// once, before anything is mapped or written, and a caller that gets no space gets an error.
package shm

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is the memory file system of a host.
const Dir = "/dev/shm"

// Spare is what stays free there for each process of a host, in bytes. MPI libraries map files of their own without
// allocating the pages, and die if one of these finds no space: Open MPI has 4 MiB of each rank.
const Spare = 4 << 20

// Create makes a file of bytes zeros without a name. It goes away when the last process that has it open or mapped
// ends, however it ends. All of its pages are allocated, and spare bytes were free beside them.
func Create(dir string, bytes, spare int64) (*os.File, error) {
	f, err := createUnnamed(dir)
	if err != nil {
		return nil, err
	}
	if err = requireFree(f, bytes+spare); err == nil { // fail before taking memory from others, even for a moment
		err = allocate(f, bytes)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = fill(f, bytes)
	}
	if err == nil {
		err = requireFree(f, spare) // others may have allocated meanwhile
	}
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reserve allocates the pages of an empty file that is to be written, for bytes bytes, and leaves its length as it is.
// If there is no space for them and the spare bytes, Reserve allocates none, and the error wraps ENOSPC. On a file
// system that cannot allocate in advance the write itself fails later.
func Reserve(f *os.File, bytes, spare int64) error {
	err := requireFree(f, bytes+spare)
	if err == nil {
		err = allocate(f, bytes)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err == nil {
		err = requireFree(f, spare)
	}
	if err != nil {
		return errors.Join(err, f.Truncate(0)) // also frees pages behind the end
	}
	return nil
}

// requireFree returns ENOSPC if less than spare bytes are free in a file's file system. If several processes allocate
// at one time, the last one to ask sees what all of them took.
func requireFree(f *os.File, spare int64) error {
	free, err := freeBytes(f)
	if err == nil && free < spare {
		err = &os.PathError{Op: "reserve", Path: filepath.Dir(f.Name()), Err: syscall.ENOSPC}
	}
	return err
}

// createUnlinked makes a file and removes its name before it has a byte that a crash could leave behind.
func createUnlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "fluentps-window-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fill allocates the pages by writing, which any file system can.
func fill(f *os.File, bytes int64) error {
	zeros := make([]byte, min(bytes, 1<<20))
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}
