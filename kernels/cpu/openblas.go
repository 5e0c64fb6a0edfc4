//go:build blas

package cpu

// #cgo pkg-config: openblas
// #include <cblas.h>
import "C"

import (
	"strings"
	"unsafe"

	"fluentps/kernels/gemm"
)

// backend takes the version out of a text such as "OpenBLAS 0.3.21 DYNAMIC_ARCH Zen MAX_THREADS=64".
func backend() string {
	words := strings.Fields(C.GoString(C.openblas_get_config()))
	if len(words) < 2 {
		return "openblas"
	}
	return "openblas " + words[1]
}

// One thread for each product: threads of ours share out its tiles.
func init() { C.openblas_set_num_threads(1) }

// multiply computes a tile of C: rows times columns of it, at c.
func multiply(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	transA, transB := C.enum_CBLAS_TRANSPOSE(C.CblasNoTrans), C.enum_CBLAS_TRANSPOSE(C.CblasNoTrans)
	switch op {
	case gemm.NT:
		transB = C.CblasTrans
	case gemm.TN:
		transA = C.CblasTrans
	}
	C.cblas_sgemm(C.CblasRowMajor, transA, transB, C.blasint(rows), C.blasint(columns), C.blasint(k),
		1, pointer(a), C.blasint(lda), pointer(b), C.blasint(ldb), C.float(beta), pointer(c), C.blasint(ldc))
}

func pointer(x []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(x))) }
