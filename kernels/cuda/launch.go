//go:build cuda

package cuda

// #include <cuda.h>
// #include <stdint.h>
// #include <stdlib.h>
//
// enum { PARAMETERS_MAX = 32 };
//
// // cuda_jit_log writes the driver's messages about a faulty module to log.
// static CUresult cuda_jit_log(const char *image, char *log, size_t room)
// {
// 	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
// 	void *values[] = {log, (void *)(uintptr_t)room};
// 	CUmodule module;
// 	CUresult r = cuModuleLoadDataEx(&module, image, 2, options, values);
// 	if (r == CUDA_SUCCESS)
// 		cuModuleUnload(module);
// 	return r;
// }
//
// struct shape { unsigned grid[3], block[3]; };
//
// // cuda_launch passes the addresses of n values of 8 bytes each, of which the driver reads as many bytes as the parameter has.
// // The addresses are made here, because Go may store no pointer in memory of C that was not cleared before: its write
// // barrier reads the old value.
// static CUresult cuda_launch(CUfunction f, struct shape s, CUstream stream, const uint64_t *values, int n)
// {
// 	void *parameters[PARAMETERS_MAX];
// 	for (int i = 0; i < n; i++)
// 		parameters[i] = (void *)&values[i];
// 	return cuLaunchKernel(f, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], 0, stream, parameters, NULL);
// }
import "C"

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// program is a loaded kernel.
type program struct {
	*kernel.CUDA
	entries map[string]cu.Function // of its PTX, by name
}

// module is the code of a PTX text, which several kernels may share.
type module struct {
	loaded  cu.Module
	entries map[string]cu.Function
}

var entryOf = regexp.MustCompile(`\.visible \.entry (\w+)`)

// load loads all kernels. The driver compiles them now and loads the code of each entry, so the first iteration need not wait for that.
func (d *device) load(table []*kernels.Kernel) error {
	for _, k := range table {
		if k.CUDA == nil {
			continue
		}
		m, have := d.modules[k.CUDA.PTX]
		if !have {
			var err error
			if m, err = d.loadPTX(k.Name, k.CUDA.PTX); err != nil {
				return err
			}
		}
		d.loaded[k] = &program{CUDA: k.CUDA, entries: m.entries}
	}
	return nil
}

func (d *device) loadPTX(name, ptx string) (*module, error) {
	loaded, err := cu.LoadData(ptx)
	if err != nil {
		return nil, d.fail(err, "load kernel %s%s", name, jitLog(ptx))
	}
	m := &module{loaded, map[string]cu.Function{}}
	d.modules[ptx] = m
	for _, found := range entryOf.FindAllStringSubmatch(ptx, -1) {
		if m.entries[found[1]], err = loaded.Function(found[1]); err != nil {
			return nil, d.fail(err, "find the entry %s of kernel %s", found[1], name)
		}
	}
	return m, nil
}

func jitLog(ptx string) string {
	const room = 4096
	image, log := C.CString(ptx), (*C.char)(C.calloc(room, 1))
	defer C.free(unsafe.Pointer(image))
	defer C.free(unsafe.Pointer(log))
	C.cuda_jit_log(image, log, room)
	if text := strings.TrimSpace(C.GoString(log)); text != "" {
		return " (" + text + ")"
	}
	return ""
}

func (d *device) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := k.Check(a); err != nil {
		return err
	}
	if d.loaded[k] == nil {
		return fmt.Errorf("cuda: kernel %s has no code for GPUs", k.Name)
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	var err error
	if ok, transA, transB := d.blasProduct(k); ok {
		err = d.multiply(k, a, transA, transB)
	} else {
		err = d.run(k, a)
	}
	if err == nil {
		d.launched++
	}
	return err
}

// run launches our own code for a kernel.
func (d *device) run(k *kernels.Kernel, a kernels.Args) error {
	p := d.loaded[k]
	n, err := d.parameters(k, p, &a)
	if err != nil {
		return err
	}
	for _, s := range p.Steps(a.N) {
		if s.Entry == "" {
			break
		}
		if s.Grid[0] == 0 || s.Grid[1] == 0 || s.Grid[2] == 0 { // nothing to compute
			continue
		}
		f, have := p.entries[s.Entry]
		if !have {
			return fmt.Errorf("cuda: kernel %s: its PTX has no entry %s", k.Name, s.Entry)
		}
		if s.Grid[1] > kernel.GridMax || s.Grid[2] > kernel.GridMax {
			return d.fail(errTooWide, "launch %s of grid %v, sizes %v", s.Entry, s.Grid, a.N)
		}
		if err := result(d.startEntry(f, &s, n)); err != nil {
			return d.fail(err, "launch %s of grid %v, block %v, sizes %v", s.Entry, s.Grid, s.Block, a.N)
		}
	}
	return nil
}

// startEntry starts an entry with the first n values of the device.
func (d *device) startEntry(f cu.Function, s *kernel.Step, n int) C.CUresult {
	var shape C.struct_shape
	for i := range 3 {
		shape.grid[i], shape.block[i] = C.uint(s.Grid[i]), C.uint(s.Block[i])
	}
	// Package cu hides its only field.
	return C.cuda_launch(*(*C.CUfunction)(unsafe.Pointer(&f)), shape, *(*C.CUstream)(unsafe.Pointer(&d.compute)),
		(*C.uint64_t)(&d.values[0]), C.int(n))
}

// The conversions of startEntry, and the array of cuda_launch, fit.
var _ = [1]struct{}{}[unsafe.Sizeof(cu.Function{})-unsafe.Sizeof(C.CUfunction(nil))+
	unsafe.Sizeof(cu.Stream{})-unsafe.Sizeof(C.CUstream(nil))]
var _ [C.PARAMETERS_MAX - parametersMax]struct{}

// parameters stores the parameters that every entry of a kernel takes, and returns their number.
func (d *device) parameters(k *kernels.Kernel, p *program, a *kernels.Args) (int, error) {
	n := 0
	add := func(value uint64) {
		d.values[n] = value
		n++
	}
	for i := range p.Vecs {
		v := p.Vector(a, i)
		if v.Dev == 0 && len(v.Host) > 0 {
			return 0, fmt.Errorf("cuda: %s: vector %d is not memory of a GPU", k.Name, i)
		}
		if err := d.use(v); err != nil {
			return 0, err
		}
		add(v.Dev)
	}
	for i := range p.Sizes {
		if a.N[i] > math.MaxInt32 {
			return 0, fmt.Errorf("cuda: %s: size %d is %d, must be at most %d", k.Name, i, a.N[i], math.MaxInt32)
		}
		add(uint64(uint32(a.N[i])))
	}
	for i := range p.Scalars {
		add(uint64(math.Float32bits(a.F[i])))
	}
	if p.Scratch != nil {
		if err := d.growScratch(p.Scratch(a.N)); err != nil {
			return 0, err
		}
		add(uint64(d.scratch))
	}
	return n, nil
}

// growScratch makes scratch at least n elements long. All launches are on one stream, so one launch uses it at a time.
func (d *device) growScratch(n int) error {
	if n <= d.scratchLen {
		return nil
	}
	if d.scratch != 0 {
		if err := d.wait(d.compute, "wait for kernels"); err != nil {
			return err
		}
		if err := cu.MemFree(d.scratch); err != nil {
			return d.fail(err, "release scratch")
		}
		d.scratch, d.scratchLen = 0, 0
	}
	p, err := d.alloc(n)
	if err != nil {
		return err
	}
	d.scratch, d.scratchLen = p, n
	return nil
}
