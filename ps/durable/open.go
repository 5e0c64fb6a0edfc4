package durable

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file for reading, through symbolic links. Whatever else the path names (a FIFO, a device, a socket, a
// folder) is an error, at once: opening a FIFO otherwise waits for a writer that may never come, and a device may have no end.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a regular file does not know the flag; a FIFO opens without a writer
	if err != nil {
		return nil, err
	}
	return regular(f)
}

// regular closes what is no regular file.
func regular(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil {
		err = Regular(f.Name(), info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Regular says what a path names where that is no regular file.
func Regular(path string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return fmt.Errorf("%q is %s, must be a regular file", path, kind(mode))
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "no file that holds data"
}
