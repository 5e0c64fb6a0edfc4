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

func setThreads(n int) { C.openblas_set_num_threads(C.int(n)) }

// product hands C = A·B + beta*C to OpenBLAS; a bias is put into C first. The lengths have been
// checked by Launch, because C code would write past the end.
func product(_ int, op gemm.Op, m, n, k int, a, b, c, bias []float32, beta float32) {
	if m == 0 || n == 0 {
		return
	}
	if len(bias) > 0 || k == 0 {
		gemm.Rows(op, 0, m, m, n, 0, nil, nil, c, bias, beta)
		beta = 1
	}
	if k == 0 {
		return
	}
	transA, transB := C.enum_CBLAS_TRANSPOSE(C.CblasNoTrans), C.enum_CBLAS_TRANSPOSE(C.CblasNoTrans)
	lda, ldb := k, n
	switch op {
	case gemm.NT:
		transB, ldb = C.CblasTrans, k
	case gemm.TN:
		transA, lda = C.CblasTrans, m
	}
	C.cblas_sgemm(C.CblasRowMajor, transA, transB, C.blasint(m), C.blasint(n), C.blasint(k),
		1, pointer(a), C.blasint(lda), pointer(b), C.blasint(ldb), C.float(beta), pointer(c), C.blasint(n))
}

func pointer(x []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(x))) }
