package durable

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file for reading, through symbolic links. It returns an error at once if the path names anything
// else (a FIFO, a device, a socket, a folder): otherwise opening a FIFO waits for a writer that may never come, and a
// device may have no end.
func Open(path string) (*os.File, error) {
	// O_NONBLOCK has no effect on a regular file; with it a FIFO opens without a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return regular(f)
}

// regular returns f, or closes it and returns an error if it is no regular file.
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

// Regular returns an error that names the kind of file, if it is not regular.
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
