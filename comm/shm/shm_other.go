//go:build !linux

package shm

import (
	"errors"
	"os"
)

// Elsewhere nothing is taken in advance but by writing, and what is free is not asked.

func allocate(*os.File, int64) error { return errors.ErrUnsupported }

func freeBytes(*os.File) (int64, error) { return 1 << 62, nil }

func unnamed(dir string) (*os.File, error) { return removed(dir) }

// Name would give a file of Create a name.
func Name(*os.File, string) error { return errors.ErrUnsupported }
