//go:build cuda

package cuda

// #include <dlfcn.h>
// #include <stddef.h>
// #include <stdlib.h>
//
// // found is a result of cuDNN's search for algorithms: cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t, which are the same.
// struct found {
// 	int algorithm, status;
// 	float ms;
// 	size_t memory;
// 	int determinism, math, reserved[3];
// };
//
// // The legacy calls for convolutions. They are the same in versions 8 and 9.
// struct cudnn {
// 	void *library, *handle, *workspace;
// 	size_t room; // bytes of the workspace
// 	size_t (*version)(void);
// 	const char *(*error)(int);
// 	int (*create)(void **), (*destroy)(void *), (*set_stream)(void *, void *);
// 	int (*create_tensor)(void **), (*destroy_tensor)(void *), (*set_tensor)(void *, int format, int type, int n, int c, int h, int w);
// 	int (*create_filter)(void **), (*destroy_filter)(void *), (*set_filter)(void *, int type, int format, int k, int c, int h, int w);
// 	int (*create_convolution)(void **), (*destroy_convolution)(void *);
// 	int (*set_convolution)(void *, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w, int mode, int type);
// 	int (*set_math)(void *, int);
// 	// Forward, by data, by filter: two operands with what describes them, the convolution and the result.
// 	int (*find[3])(void *, void *, const void *, void *, const void *, void *, void *, void *, int, int *, struct found *, void *, size_t);
// 	int (*run[3])(void *, const void *, void *, const void *, void *, const void *, void *, int, void *,
// 		size_t, const void *, void *, void *);
// };
//
// enum { NO_LIBRARY = -1, NO_FUNCTION = -2, FOUND_MAX = 16 };
//
// static int cudnn_open(struct cudnn *c, const char *path)
// {
// 	c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
// 	if (!c->library)
// 		return NO_LIBRARY;
// 	struct { void *to; const char *name; } calls[] = {
// 		{&c->version, "cudnnGetVersion"}, {&c->error, "cudnnGetErrorString"}, {&c->create, "cudnnCreate"}, {&c->destroy, "cudnnDestroy"},
// 		{&c->set_stream, "cudnnSetStream"}, {&c->create_tensor, "cudnnCreateTensorDescriptor"},
// 		{&c->destroy_tensor, "cudnnDestroyTensorDescriptor"},
// 		{&c->set_tensor, "cudnnSetTensor4dDescriptor"}, {&c->create_filter, "cudnnCreateFilterDescriptor"},
// 		{&c->destroy_filter, "cudnnDestroyFilterDescriptor"}, {&c->set_filter, "cudnnSetFilter4dDescriptor"},
// 		{&c->create_convolution, "cudnnCreateConvolutionDescriptor"}, {&c->destroy_convolution, "cudnnDestroyConvolutionDescriptor"},
// 		{&c->set_convolution, "cudnnSetConvolution2dDescriptor"}, {&c->set_math, "cudnnSetConvolutionMathType"},
// 		{&c->find[0], "cudnnFindConvolutionForwardAlgorithmEx"}, {&c->find[1], "cudnnFindConvolutionBackwardDataAlgorithmEx"},
// 		{&c->find[2], "cudnnFindConvolutionBackwardFilterAlgorithmEx"}, {&c->run[0], "cudnnConvolutionForward"},
// 		{&c->run[1], "cudnnConvolutionBackwardData"}, {&c->run[2], "cudnnConvolutionBackwardFilter"},
// 	};
// 	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
// 		*(void **)calls[i].to = dlsym(c->library, calls[i].name);
// 		if (!*(void **)calls[i].to)
// 			return NO_FUNCTION;
// 	}
// 	return 0;
// }
//
// static const char *cudnn_last_error(void) { return dlerror(); }
// static size_t cudnn_version(struct cudnn *c) { return c->version(); }
// static const char *cudnn_text(struct cudnn *c, int status) { return c->error(status); }
//
// static int cudnn_start(struct cudnn *c, void *stream)
// {
// 	int r = c->create(&c->handle);
// 	if (r) {
// 		c->handle = NULL;
// 		return r;
// 	}
// 	return c->set_stream(c->handle, stream);
// }
//
// static int cudnn_stop(struct cudnn *c) { return c->handle ? c->destroy(c->handle) : 0; }
//
// // described is a convolution: images, filters, outputs.
// struct described {
// 	void *x, *w, *y, *how;
// };
//
// // cudnn_describe takes the sizes of kernels.ConvForward, and those of the outputs.
// static int cudnn_describe(struct cudnn *c, struct described *d, const int *n, int height, int width, int type, int format, int math)
// {
// 	enum { CROSS_CORRELATION = 1, FLOAT = 0 };
// 	int r;
// 	if ((r = c->create_tensor(&d->x)) || (r = c->create_tensor(&d->y)) || (r = c->create_filter(&d->w)) ||
// 		(r = c->create_convolution(&d->how)))
// 		return r;
// 	if ((r = c->set_tensor(d->x, format, type, n[0], n[1], n[2], n[3])) ||
// 		(r = c->set_tensor(d->y, format, type, n[0], n[4], height, width)))
// 		return r;
// 	if ((r = c->set_filter(d->w, type, format, n[4], n[1], n[5], n[5])))
// 		return r;
// 	if ((r = c->set_convolution(d->how, n[7], n[7], n[6], n[6], 1, 1, CROSS_CORRELATION, FLOAT)))
// 		return r;
// 	return c->set_math(d->how, math);
// }
//
// static void cudnn_forget(struct cudnn *c, struct described *d)
// {
// 	if (d->x)
// 		c->destroy_tensor(d->x);
// 	if (d->y)
// 		c->destroy_tensor(d->y);
// 	if (d->w)
// 		c->destroy_filter(d->w);
// 	if (d->how)
// 		c->destroy_convolution(d->how);
// }
//
// static int cudnn_set_math(struct cudnn *c, struct described *d, int math) { return c->set_math(d->how, math); }
//
// // The operands of a direction, in the order of its call: a, b and the result.
// static void cudnn_order(const struct described *d, int direction, void *order[3])
// {
// 	void *of[3][3] = {{d->x, d->w, d->y}, {d->w, d->y, d->x}, {d->x, d->y, d->w}};
// 	for (int i = 0; i < 3; i++)
// 		order[i] = of[direction][i];
// }
//
// static int cudnn_find(struct cudnn *c, struct described *d, int direction, size_t a, size_t b, size_t to,
// 	int *count, struct found *found)
// {
// 	void *of[3];
// 	cudnn_order(d, direction, of);
// 	return c->find[direction](c->handle, of[0], (void *)a, of[1], (void *)b, d->how, of[2], (void *)to, FOUND_MAX, count, found,
// 		c->workspace, c->room);
// }
//
// static int cudnn_run(struct cudnn *c, struct described *d, int direction, size_t a, size_t b, size_t to, int algorithm)
// {
// 	const float one = 1, zero = 0;
// 	void *of[3];
// 	cudnn_order(d, direction, of);
// 	return c->run[direction](c->handle, &one, of[0], (void *)a, of[1], (void *)b, d->how, algorithm, c->workspace,
// 		c->room, &zero, of[2], (void *)to);
// }
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"fluentps/kernels"
)

// CuDNN is cuDNN, found at run time. Only package gpucheck/check uses it, to compare our convolutions: no run computes with it.
type CuDNN struct {
	device *device
	calls  *C.struct_cudnn // outside the Go heap, because it holds a handle of the library
	// Version is that of the library: 9.10.2.
	Version string
}

// A Direction is what of a convolution is computed.
type Direction int

// The directions, in cuDNN's order.
const (
	Forward Direction = iota
	ByData
	ByFilter
)

// Precision is how cuDNN computes: the type of the values, their order and what it may round.
type Precision struct {
	Name               string
	kind, format, math C.int
}

// The precisions in which convolutions are compared. The values are cuDNN's.
var (
	ConvFloat32  = Precision{"float32", typeFloat, formatNCHW, mathFMA}
	ConvTF32     = Precision{"TF32", typeFloat, formatNCHW, mathDefault}
	ConvTF32Last = Precision{"TF32 channels-last", typeFloat, formatNHWC, mathDefault}
	ConvBF16     = Precision{"bf16 channels-last", typeBF16, formatNHWC, mathTensor}
)

const (
	typeFloat, typeBF16              = 0, 9
	formatNCHW, formatNHWC           = 0, 1
	mathDefault, mathTensor, mathFMA = 0, 1, 3 // the default rounds factors to TF32
)

// OpenCuDNN starts cuDNN 9, or 8, for the stream of kernels of a device, with a workspace of so many bytes. The error
// is Unusable if there is none, or none whose calls are known.
func OpenCuDNN(d kernels.Device, workspace int) (*CuDNN, error) {
	c := &CuDNN{device: d.(*device), calls: (*C.struct_cudnn)(C.calloc(1, C.sizeof_struct_cudnn))}
	if err := c.load(); err != nil {
		C.free(unsafe.Pointer(c.calls))
		return nil, err
	}
	room, err := c.device.Alloc(workspace / elemBytes)
	if err == nil {
		err = c.device.enter()
	}
	if err != nil {
		C.free(unsafe.Pointer(c.calls))
		return nil, err
	}
	defer c.device.leave()
	*(*uint64)(unsafe.Pointer(&c.calls.workspace)), c.calls.room = room.Dev, C.size_t(workspace/elemBytes*elemBytes)
	if err := c.status(C.cudnn_start(c.calls, unsafe.Pointer(c.device.compute.C())), "start"); err != nil {
		C.free(unsafe.Pointer(c.calls))
		return nil, err
	}
	return c, nil
}

// load opens the newest library whose calls are known.
func (c *CuDNN) load() error {
	var passedOver []string
	for _, name := range []string{"libcudnn.so.9", "libcudnn.so.8"} {
		path := C.CString(name)
		status := C.cudnn_open(c.calls, path)
		C.free(unsafe.Pointer(path))
		if status != 0 {
			text := C.GoString(C.cudnn_last_error())
			// it is damaged, needs another library, or lacks a call
			if !strings.HasPrefix(text, name+": cannot open shared object file: No such file") {
				passedOver = append(passedOver, name+" cannot be used: "+text)
			}
			continue
		}
		v := int(C.cudnn_version(c.calls))
		major, rest := v/1000, v%1000 // 8902 is 8.9.2
		if v >= 90000 {
			major, rest = v/10000, v%10000 // 91002 is 9.10.2
		}
		c.Version = fmt.Sprintf("%d.%d.%d", major, rest/100, rest%100)
		if major == 8 || major == 9 {
			return nil
		}
		passedOver = append(passedOver, fmt.Sprintf("%s is cuDNN %s, whose calls are not known: needs 8 or 9", name, c.Version))
	}
	if len(passedOver) == 0 {
		return unusable("found none of libcudnn.so.9 and libcudnn.so.8 (LD_LIBRARY_PATH can say where they are)")
	}
	return unusable("%s", strings.Join(passedOver, "; "))
}

func (c *CuDNN) status(status C.int, op string) error {
	if status == 0 {
		return nil
	}
	return fmt.Errorf("cuDNN %s: %s: status %d, %s", c.Version, op, int(status), C.GoString(C.cudnn_text(c.calls, status)))
}

// Close releases what cuDNN has taken.
func (c *CuDNN) Close() error {
	if err := c.device.enter(); err != nil {
		return err
	}
	defer c.device.leave()
	err := c.status(C.cudnn_stop(c.calls), "stop")
	C.free(unsafe.Pointer(c.calls))
	return err
}

// Algorithm is one that cuDNN has found for a convolution.
type Algorithm struct {
	number, math C.int
	Name         string
}

var algorithmNames = [3][]string{
	{"implicit GEMM", "implicit GEMM, precomputed", "GEMM", "direct", "FFT", "FFT in tiles", "Winograd", "Winograd, not fused"},
	{"0", "1", "FFT", "FFT in tiles", "Winograd", "Winograd, not fused"},
	{"0", "1", "FFT", "3", "Winograd", "Winograd, not fused", "FFT in tiles"},
}

// Convolution is one that cuDNN computes in one direction.
type Convolution struct {
	library   *CuDNN
	described C.struct_described
	direction Direction
	precision Precision
	from      [2]kernels.Vec
	to        kernels.Vec
}

// Convolution describes a convolution of the sizes of kernels.ConvForward. The operands are in cuDNN's order: images
// and filters; filters and gradients of outputs; images and gradients of outputs. The caller closes it.
func (c *CuDNN) Convolution(n kernels.Sizes, d Direction, p Precision, from [2]kernels.Vec, to kernels.Vec) (*Convolution, error) {
	v := &Convolution{library: c, direction: d, precision: p, from: from, to: to}
	var sizes [8]C.int
	for i := range sizes {
		sizes[i] = C.int(n[i])
	}
	height, width := kernels.Windows(n)
	status := C.cudnn_describe(c.calls, &v.described, &sizes[0], C.int(height), C.int(width), p.kind, p.format, p.math)
	if err := c.status(status, "describe a convolution"); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Close releases the description.
func (v *Convolution) Close() { C.cudnn_forget(v.library.calls, &v.described) }

// Find lets cuDNN time all its algorithms, and returns the fastest ones, at most so many.
func (v *Convolution) Find(most int) (found []Algorithm, err error) {
	c := v.library
	if err := c.device.enter(); err != nil {
		return nil, err
	}
	defer c.device.leave()
	var results [C.FOUND_MAX]C.struct_found
	var count C.int
	status := C.cudnn_find(c.calls, &v.described, C.int(v.direction), C.size_t(v.from[0].Dev), C.size_t(v.from[1].Dev),
		C.size_t(v.to.Dev), &count, &results[0])
	if err := c.status(status, "find algorithms"); err != nil {
		return nil, err
	}
	names := algorithmNames[v.direction]
	for _, r := range results[:max(0, min(int(count), len(results)))] {
		if r.status != 0 || r.memory > c.calls.room || len(found) == most {
			continue
		}
		a := Algorithm{number: r.algorithm, math: r.math, Name: fmt.Sprint("number ", int(r.algorithm))}
		if v.precision.math == mathFMA {
			a.math = mathFMA // the search also tries what rounds
		}
		if 0 <= r.algorithm && int(r.algorithm) < len(names) {
			a.Name = names[r.algorithm]
		}
		found = append(found, a)
	}
	return found, nil
}

// Use makes Run take an algorithm.
func (v *Convolution) Use(a Algorithm) error {
	return v.library.status(C.cudnn_set_math(v.library.calls, &v.described, a.math), "set what it may round")
}

// Run queues the convolution, by the algorithm of Use.
func (v *Convolution) Run(a Algorithm) error {
	c := v.library
	if err := c.device.enter(); err != nil {
		return err
	}
	defer c.device.leave()
	return c.status(C.cudnn_run(c.calls, &v.described, C.int(v.direction), C.size_t(v.from[0].Dev),
		C.size_t(v.from[1].Dev), C.size_t(v.to.Dev), a.number), "convolve by "+a.Name)
}
