//go:build cuda

package cuda

// #include <cuda.h>
// #include <stdlib.h>
// #include "cuload/stub/load.h"
import "C"

import (
	"embed"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// Built says whether this binary can use GPUs.
const Built = true

// The loader is linked from build/cuda, which the go command does not watch. These files are embedded so that the package
// is linked again when they change.
//
//go:embed cuload/names.txt cuload/stub
var _ embed.FS

// library is the file of the driver. The system finds it (LD_LIBRARY_PATH).
const library = "libcuda.so.1"

// open opens the driver, once per process.
var open = sync.OnceValue(func() error {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	switch code := C.cuload_open(path); {
	case code == 0:
		return nil
	case code == C.CULOAD_NO_LIBRARY:
		return unusable("%s was not found on %s (no NVIDIA driver?)", library, host())
	case code < 0:
		return unusable("%s cannot be used on %s: %s", library, host(), C.GoString(C.cuload_error()))
	default:
		return unusable("the driver reports no usable GPU on %s: %s", host(), codeText(int(code)))
	}
})

// GPUs lists the GPUs that the driver shows to this process, at least one. Its errors are Unusable.
func GPUs() ([]GPU, error) {
	if err := open(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err == nil && n == 0 {
		return nil, unusable("the driver reports no usable GPU on %s: it shows 0", host())
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		if gpus[i], err = describe(i); err != nil {
			break
		}
	}
	if err != nil {
		return nil, unusable("the driver cannot describe the GPUs of %s: %s", host(), errorText(err))
	}
	return gpus, nil
}

func describe(index int) (GPU, error) {
	g := GPU{Index: index}
	d, err := cu.GetDevice(index)
	if err != nil {
		return g, err
	}
	if g.Name, err = d.Name(); err != nil {
		return g, err
	}
	id, err := d.UUID()
	if err != nil {
		return g, err
	}
	g.UUID = id.String()
	g.Memory, err = d.TotalMem()
	return g, err
}

// codeOf returns CUDA's number of an error of package cu, which hides the type, or -1 for any other error.
func codeOf(err error) int {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return int(v.Int())
	}
	return -1
}

// errorText returns CUDA's name of an error: "CUDA_ERROR_OUT_OF_MEMORY (2)".
func errorText(err error) string {
	if code := codeOf(err); code >= 0 {
		return codeText(code)
	}
	return err.Error()
}

func codeText(code int) string {
	var name *C.char
	if C.cuGetErrorName(C.CUresult(code), &name) == C.CUDA_SUCCESS && name != nil {
		return fmt.Sprintf("%s (%d)", C.GoString(name), code)
	}
	if code == noDevice { // the driver, which knows the names, is not open
		return fmt.Sprintf("CUDA_ERROR_NO_DEVICE (%d)", code)
	}
	return fmt.Sprintf("CUDA error %d", code)
}

const noDevice = 100

// Errors of CUDA that the module's header, which is of CUDA 11.0, does not have. The number is that of CUDA's documentation.
const (
	contained           = 226 // CUDA_ERROR_CONTAINED, from 12.8 on
	tensorMemoryLeak    = 721 // CUDA_ERROR_TENSOR_MEMORY_LEAK, from 12.8 on
	mpsRPCFailure       = 806 // CUDA_ERROR_MPS_RPC_FAILURE, from 11.4 on
	mpsClientTerminated = 810 // CUDA_ERROR_MPS_CLIENT_TERMINATED, from 11.8 on
)

// breaksContext reports whether an error makes its context useless: those of which the documentation says that the
// process must end, and those after which no answer of the driver means anything: a lost connection to the server of
// MPS, and the unknown error.
func breaksContext(code int) bool {
	switch code {
	case C.CUDA_ERROR_ECC_UNCORRECTABLE, C.CUDA_ERROR_NVLINK_UNCORRECTABLE, contained,
		C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT, C.CUDA_ERROR_CONTEXT_IS_DESTROYED, C.CUDA_ERROR_ASSERT,
		C.CUDA_ERROR_HARDWARE_STACK_ERROR, C.CUDA_ERROR_ILLEGAL_INSTRUCTION, C.CUDA_ERROR_MISALIGNED_ADDRESS,
		C.CUDA_ERROR_INVALID_ADDRESS_SPACE, C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED, tensorMemoryLeak,
		mpsRPCFailure, mpsClientTerminated, C.CUDA_ERROR_UNKNOWN:
		return true
	}
	return false
}

// fail turns an error of package cu into a Failure. If the error makes the context useless, every later call returns it.
func (d *device) fail(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	f := &kernels.Failure{Device: fmt.Sprintf("GPU %d (%s) on %s", d.gpu.Index, d.gpu.Name, host()),
		Op: fmt.Sprintf(format, args...), Why: errorText(err)}
	if breaksContext(codeOf(err)) && !d.broken.CompareAndSwap(nil, f) {
		return d.broken.Load()
	}
	return f
}
