//go:build !linux

package shm

import (
	"errors"
	"os"
)

// On other systems only writing allocates pages, and the free space is not known.

func allocate(*os.File, int64) error { return errors.ErrUnsupported }

func freeBytes(*os.File) (int64, error) { return 1 << 62, nil }

func createUnnamed(dir string) (*os.File, error) { return createUnlinked(dir) }

// Name is not supported here.
func Name(*os.File, string) error { return errors.ErrUnsupported }
