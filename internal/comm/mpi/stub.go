//go:build !mpi

package mpi

import (
	"fmt"

	"fluentps/internal/comm"
)

// Options of Init; the zero value is ready to use.
type Options struct {
	PoolMax int64  // bytes of this rank's buffers; 0: comm.PoolMax
	Scratch string // folder for files of Open MPI in the host's memory file system; "": its default
}

// Init fails in a build without MPI.
func Init(Options) (comm.Transport, error) {
	return nil, fmt.Errorf("mpi: built without MPI: make build: %w", comm.ErrNotBuilt)
}

// Library is empty in a build without MPI.
func Library() string { return "" }

// CUDA reports that this build has no MPI.
func CUDA() string { return "no: MPI is not built in" }

// Bind binds nothing in a build without MPI.
func Bind(comm.Transport, bool) int { return -1 }
