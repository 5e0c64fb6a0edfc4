//go:build cuemu

package cuemu

// #cgo CXXFLAGS: -std=c++17 -fno-strict-aliasing -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter
// #cgo races LDFLAGS: -lcuemu
// #include <stdlib.h>
// #include "cuemu.h"
//
// static int launch(const char *entry, const unsigned *grid, const unsigned *block, unsigned long long *values) {
// 	void *args[24];
// 	for (int i = 0; i < 24; i++)
// 		args[i] = &values[i];
// 	return cuemu_launch(entry, grid, block, 0, args);
// }
//
// static int copy_in(unsigned long long to, const float *from, size_t bytes) { return cuemu_copy((void *)to, from, bytes); }
// static int copy_out(float *to, unsigned long long from, size_t bytes) { return cuemu_copy(to, (const void *)from, bytes); }
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

type device struct {
	kernels.HostMemory
	vectors []unsafe.Pointer // from Alloc
}

// New returns a device that runs kernels on the emulator. Blocks, and their threads between two barriers, run in
// ascending order, or in descending order if reverse is set. The order applies to the whole process.
func New(reverse bool) kernels.Device {
	order := C.int(0)
	if reverse {
		order = 1
	}
	C.cuemu_reverse(order)
	return &device{}
}

func (d *device) Name() string { return "cuda (emulated)" }

func (d *device) Alloc(n int) (kernels.Vec, error) {
	p, err := alloc(n)
	if err != nil {
		return kernels.Vec{}, err
	}
	d.vectors = append(d.vectors, p)
	return kernels.Vec{Dev: uint64(uintptr(p)), N: n}, nil
}

// Upload copies src to the start of dst. The host cannot access the emulator's memory itself.
func (d *device) Upload(dst kernels.Vec, src []float32) error {
	if dst.N < len(src) {
		return fmt.Errorf("cuemu: upload of %d elements into a vector of %d", len(src), dst.N)
	}
	return failing(func() C.int {
		return C.copy_in(C.ulonglong(dst.Dev), (*C.float)(unsafe.SliceData(src)), C.size_t(4*len(src)))
	})
}

// Download copies the first len(dst) elements of src.
func (d *device) Download(dst []float32, src kernels.Vec) error {
	if src.N < len(dst) {
		return fmt.Errorf("cuemu: download of %d elements from a vector of %d", len(dst), src.N)
	}
	return failing(func() C.int {
		return C.copy_out((*C.float)(unsafe.SliceData(dst)), C.ulonglong(src.Dev), C.size_t(4*len(dst)))
	})
}

func alloc(n int) (unsafe.Pointer, error) {
	if n < 0 {
		return nil, fmt.Errorf("cuemu: cannot allocate %d elements", n)
	}
	p := C.cuemu_alloc(C.size_t(4 * n))
	if p == nil {
		return nil, fmt.Errorf("cuemu: no memory for %d elements", n)
	}
	return p, nil
}

func (d *device) Wrap([]float32) (kernels.Vec, error) {
	return kernels.Vec{}, errors.New("cuemu: cannot wrap host memory: only the emulator's own memory detects accesses past its ends")
}

// Launch runs the kernel's steps. Scratch has exactly the length that the kernel requests, and holds NaN at first.
func (d *device) Launch(k *kernels.Kernel, a kernels.Args) (err error) {
	if err := k.Check(a); err != nil {
		return err
	}
	if k.CUDA == nil {
		return fmt.Errorf("cuemu: kernel %s has no CUDA source", k.Name)
	}
	values := pack(k.CUDA, a)
	if k.CUDA.Scratch != nil {
		n := k.CUDA.Scratch(a.N)
		var scratch unsafe.Pointer
		if scratch, err = alloc(n); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, free(scratch)) }()
		err = failing(func() C.int {
			return C.cuemu_set(scratch, C.uint(math.Float32bits(float32(math.NaN()))), C.size_t(n))
		})
		if err != nil {
			return err
		}
		values[k.CUDA.Vecs+k.CUDA.Sizes+k.CUDA.Scalars] = C.ulonglong(uintptr(scratch))
	}
	for _, step := range k.CUDA.Steps(a.N) {
		if step.Entry == "" {
			break
		}
		if err := run(step, &values); err != nil {
			return err
		}
	}
	return nil
}

// pack returns the arguments, each in the low bytes of 8: addresses, ints and floats.
func pack(c *kernel.CUDA, a kernels.Args) (values [24]C.ulonglong) {
	for i := range c.Vecs {
		values[i] = C.ulonglong(c.Vector(&a, i).Dev)
	}
	for i, n := range a.N[:c.Sizes] {
		values[c.Vecs+i] = C.ulonglong(uint32(int32(n)))
	}
	for i, f := range a.F[:c.Scalars] {
		values[c.Vecs+c.Sizes+i] = C.ulonglong(math.Float32bits(f))
	}
	return values
}

func run(step kernel.Step, values *[24]C.ulonglong) error {
	name := C.CString(step.Entry)
	defer C.free(unsafe.Pointer(name))
	var grid, block [3]C.uint
	for i := range 3 {
		grid[i], block[i] = C.uint(step.Grid[i]), C.uint(step.Block[i])
	}
	return failing(func() C.int { return C.launch(name, &grid[0], &block[0], &values[0]) })
}

// failing makes a call that returns nonzero for an error. The emulator keeps the error for the thread of the call.
func failing(call func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if call() == 0 {
		return nil
	}
	return errors.New("cuemu: " + C.GoString(C.cuemu_error()))
}

// Has reports whether an entry of this name is compiled in.
func Has(entry string) bool {
	name := C.CString(entry)
	defer C.free(unsafe.Pointer(name))
	return C.cuemu_has(name) != 0
}

// Close frees all vectors. It returns an error if a kernel wrote in front of one.
func (d *device) Close() error {
	var err error
	for _, p := range d.vectors {
		err = errors.Join(err, free(p))
	}
	d.vectors = nil
	return err
}

func free(p unsafe.Pointer) error {
	if C.cuemu_free(p) != 0 {
		return errors.New("cuemu: memory in front of a vector was written")
	}
	return nil
}
