//go:build mpi

package mpi

// #include "shim.h"
import "C"

import "fmt"

// CUDA returns what is known before MPI has started about whether the library is CUDA-aware: whether it sends from and
// receives into memory of NVIDIA GPUs. After the start, ask CUDAAware.
func CUDA() string {
	const later = "; the library is asked when a run starts"
	switch C.fp_cuda_built() {
	case 1:
		return "yes, by mpi-ext.h" + later
	case 0:
		return "no, by mpi-ext.h" + later
	default:
		return "unknown" + later
	}
}

// CUDAAware returns nil if the library reports that it sends from and receives into memory of NVIDIA GPUs.
func (t *transport) CUDAAware() error {
	switch C.fp_cuda_aware() {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("%s says that it is not CUDA-aware", Library())
	default:
		return fmt.Errorf("%s cannot be asked whether it is CUDA-aware", Library())
	}
}
