//go:build cuda

package cuda

// #include <cuda.h>
import "C"

import (
	"unsafe"
)

// span is the address range of host memory, from `from` to below `to`.
type span struct{ from, to uintptr }

func spanOf(p []float32) span {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return span{from, from + uintptr(len(p))*elemBytes}
}

const elemBytes = 4

func (s span) contains(other span) bool { return s.from <= other.from && other.to <= s.to }

// code is the error of a call that package cu lacks. It has the form of package cu's own errors.
type code int

func (c code) Error() string { return codeText(int(c)) }

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return code(r)
}

// allocHost returns n elements of pinned memory outside the Go heap.
func allocHost(n int) ([]float32, error) {
	var p unsafe.Pointer
	if err := result(C.cuMemHostAlloc(&p, C.size_t(n)*elemBytes, 0)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*float32)(p), n), nil
}

func freeHost(p []float32) error {
	if p == nil {
		return nil
	}
	return result(C.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(p))))
}

func pin(p []float32) error {
	return result(C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(p)), C.size_t(len(p))*elemBytes, 0))
}

func unpin(p []float32) error {
	return result(C.cuMemHostUnregister(unsafe.Pointer(unsafe.SliceData(p))))
}
