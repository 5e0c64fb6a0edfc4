//go:build cuda

package cuda

// #include <dlfcn.h>
// #include <stddef.h>
// #include <stdlib.h>
// #include <cuda.h>
//
// // The calls of cuBLAS that products need. They are the same in versions 11, 12 and 13.
// struct cublas {
// 	void *library, *handle;
// 	int (*create)(void **);
// 	int (*destroy)(void *);
// 	int (*set_stream)(void *, void *);
// 	int (*set_math_mode)(void *, int);
// 	int (*set_workspace)(void *, void *, size_t);
// 	int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
// };
//
// enum { NO_LIBRARY = -1, NO_FUNCTION = -2 };
//
// // cublas_open opens a library and makes a handle. A library that fails stays loaded: CUDA's may have threads by then.
// static int cublas_open(struct cublas *b, const char *path)
// {
// 	b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
// 	if (!b->library)
// 		return NO_LIBRARY;
// 	struct { void **to; const char *name; } calls[] = {
// 		{(void **)&b->create, "cublasCreate_v2"}, {(void **)&b->destroy, "cublasDestroy_v2"},
// 		{(void **)&b->set_stream, "cublasSetStream_v2"}, {(void **)&b->set_math_mode, "cublasSetMathMode"},
// 		{(void **)&b->set_workspace, "cublasSetWorkspace_v2"}, {(void **)&b->sgemm, "cublasSgemm_v2"},
// 	};
// 	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
// 		*calls[i].to = dlsym(b->library, calls[i].name);
// 		if (!*calls[i].to)
// 			return NO_FUNCTION;
// 	}
// 	int r = b->create(&b->handle);
// 	if (r)
// 		b->handle = NULL;
// 	return r;
// }
//
// // cublas_use sets one stream and one workspace, so that equal products give equal bits.
// static int cublas_use(struct cublas *b, void *stream, size_t workspace, size_t bytes, int math)
// {
// 	int r = b->set_stream(b->handle, stream);
// 	if (r == 0) // after set_stream, which resets the workspace
// 		r = b->set_workspace(b->handle, (void *)workspace, bytes);
// 	return r ? r : b->set_math_mode(b->handle, math);
// }
//
// static int cublas_destroy(struct cublas *b) { return b->handle ? b->destroy(b->handle) : 0; }
//
// static const char *last_error(void) { return dlerror(); }
//
// static int cublas_sgemm(struct cublas *b, int ta, int tb, int m, int n, int k, size_t x, int ldx,
// 	size_t y, int ldy, float beta, size_t c, int ldc)
// {
// 	const float one = 1;
// 	return b->sgemm(b->handle, ta, tb, m, n, k, &one, (const float *)x, ldx, (const float *)y, ldy, &beta, (float *)c, ldc);
// }
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// blas is cuBLAS, found at run time.
type blas struct {
	calls   *C.struct_cublas // outside the Go heap, because it holds a handle of the library
	version string
	memory  cu.DevicePtr // the workspace
}

// workspaceBytes is NVIDIA's recommendation for the largest GPUs.
const workspaceBytes = 32 << 20

// Values of cuBLAS.
const (
	blasPlain, blasTransposed = 0, 1
	blasFloat32, blasTF32     = 0, 3
)

var errNoBLAS = errors.New("found none of libcublas.so.13, libcublas.so.12 and libcublas.so.11 (LD_LIBRARY_PATH can say where they are)")

// openBLAS starts the newest cuBLAS that works, for the stream of kernels, if the options ask for one. A cuBLAS that
// is found may not start: 13 does not with a driver of CUDA 12. Then an older one takes its place, and with Auto our
// kernels. Those that did not start are kept, for PassedOver.
func (d *device) openBLAS() error {
	if d.options.Gemm != CuBLAS && d.options.Gemm != Auto {
		return nil
	}
	for _, version := range []string{"13", "12", "11"} {
		b, err := d.startBLAS(version)
		if err == nil {
			d.blas = b
			return nil
		}
		if !errors.Is(err, errNoBLAS) {
			d.passedOver = append(d.passedOver, fmt.Sprintf("libcublas.so.%s does not start: %v", version, err))
		}
	}
	switch {
	case d.options.Gemm == Auto:
		return nil
	case len(d.passedOver) == 0:
		return &Unusable{errNoBLAS.Error()}
	}
	return d.fail(errors.New(d.PassedOver()), "start cuBLAS")
}

// PassedOver says which libraries this device found but cannot use, and why; "" if there are none.
func (d *device) PassedOver() string { return strings.Join(d.passedOver, "; ") }

// startBLAS returns errNoBLAS if this version of cuBLAS is not there.
func (d *device) startBLAS(version string) (started *blas, err error) {
	b := &blas{calls: (*C.struct_cublas)(C.calloc(1, C.sizeof_struct_cublas)), version: version}
	defer func() {
		if err != nil { // the caller gets the first error
			b.close(func(error, string) {})
		}
	}()
	name := "libcublas.so." + version
	path := C.CString(name)
	defer C.free(unsafe.Pointer(path))
	switch status := C.cublas_open(b.calls, path); status {
	case 0:
	case C.NO_LIBRARY:
		text := C.GoString(C.last_error())
		if strings.HasPrefix(text, name+": cannot open shared object file: No such file") {
			return nil, errNoBLAS
		}
		return nil, errors.New(text) // the file is damaged, or needs another library
	case C.NO_FUNCTION:
		return nil, errors.New(C.GoString(C.last_error()))
	default:
		return nil, fmt.Errorf("cublasCreate returns status %d, as with a driver that is older than the library", int(status))
	}
	if b.memory, err = d.alloc(workspaceBytes / elemBytes); err != nil {
		return nil, err
	}
	math := C.int(blasFloat32)
	if d.options.Math == TF32 {
		math = blasTF32
	}
	stream := unsafe.Pointer(d.compute.C())
	if status := C.cublas_use(b.calls, stream, C.size_t(b.memory), workspaceBytes, math); status != 0 {
		return nil, fmt.Errorf("cuBLAS returns status %d when it is set up", int(status))
	}
	return b, nil
}

// close releases what startBLAS has made.
func (b *blas) close(check func(error, string)) {
	if status := C.cublas_destroy(b.calls); status != 0 {
		check(fmt.Errorf("cuBLAS status %d", int(status)), "cuBLAS")
	}
	C.free(unsafe.Pointer(b.calls))
	if b.memory != 0 {
		check(cu.MemFree(b.memory), "the workspace of cuBLAS")
	}
}

func (d *device) blasError(status C.int, op string) error {
	if status == 0 {
		return nil
	}
	return d.fail(fmt.Errorf("cuBLAS status %d", int(status)), "%s", op)
}

// blasProduct reports whether cuBLAS computes a kernel, and which of the kernel's operands are transposed.
func (d *device) blasProduct(k *kernels.Kernel) (ok, transA, transB bool) {
	if d.blas == nil {
		return false, false, false
	}
	return k == kernels.GemmNN || k == kernels.GemmNT || k == kernels.GemmTN, k == kernels.GemmTN, k == kernels.GemmNT
}

// multiply launches a product of cuBLAS. cuBLAS stores matrices by columns, so it sees ours transposed. It therefore
// computes the transpose of C, as the product of the transposes of B and A. Our kernel adds a bias first, and computes
// products without terms.
func (d *device) multiply(k *kernels.Kernel, a kernels.Args, transA, transB bool) error {
	m, n, terms := a.N[0], a.N[1], a.N[2]
	if m == 0 || n == 0 {
		return nil
	}
	beta := a.F[0]
	if terms == 0 || a.V[3].Len() > 0 {
		first := a
		first.N[2] = 0
		if err := d.run(k, first); err != nil {
			return err
		}
		beta = 1
	}
	if terms == 0 {
		return nil
	}
	for _, v := range a.V[:3] {
		if v.Dev == 0 {
			return fmt.Errorf("cuda: %s: an operand is not memory of a GPU", k.Name)
		}
		if err := d.use(v); err != nil {
			return err
		}
	}
	opA, lda, opB, ldb := C.int(blasPlain), terms, C.int(blasPlain), n
	if transA {
		opA, lda = blasTransposed, m
	}
	if transB {
		opB, ldb = blasTransposed, terms
	}
	status := C.cublas_sgemm(d.blas.calls, opB, opA, C.int(n), C.int(m), C.int(terms), C.size_t(a.V[1].Dev), C.int(ldb),
		C.size_t(a.V[0].Dev), C.int(lda), C.float(beta), C.size_t(a.V[2].Dev), C.int(n))
	return d.blasError(status, "multiply")
}
