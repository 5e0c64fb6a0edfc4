//go:build cuda

package cuda

// #include <cuda.h>
// #include <stdint.h>
// #include <stdlib.h>
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
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// program is a loaded kernel.
type program struct {
	*kernel.CUDA
	module  cu.Module
	entries map[string]cu.Function // the entries launched so far, by name
}

// load loads all kernels. The driver compiles them now, so the first iteration need not wait for that.
func (d *device) load(table []*kernels.Kernel) error {
	for _, k := range table {
		if k.CUDA == nil {
			continue
		}
		module, have := d.modules[k.CUDA.PTX]
		if !have {
			var err error
			if module, err = cu.LoadData(k.CUDA.PTX); err != nil {
				return d.fail(err, "load kernel %s%s", k.Name, jitLog(k.CUDA.PTX))
			}
			d.modules[k.CUDA.PTX] = module
		}
		d.loaded[k] = &program{CUDA: k.CUDA, module: module, entries: map[string]cu.Function{}}
	}
	return nil
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
		f, err := d.entry(p, s.Entry)
		if err != nil {
			return err
		}
		err = f.Launch(s.Grid[0], s.Grid[1], s.Grid[2], s.Block[0], s.Block[1], s.Block[2], 0, d.compute, d.addresses[:n])
		if err != nil {
			return d.fail(err, "launch %s of grid %v, block %v, sizes %v", s.Entry, s.Grid, s.Block, a.N)
		}
	}
	return nil
}

// parameters stores the parameters that every entry of a kernel takes, and returns their number.
func (d *device) parameters(k *kernels.Kernel, p *program, a *kernels.Args) (int, error) {
	n := 0
	add := func(value uint64) {
		d.values[n] = value
		n++
	}
	for i := range p.Vecs {
		v := &a.V[i]
		if v.Dev == 0 && len(v.Host) > 0 {
			return 0, fmt.Errorf("cuda: %s: vector %d is not memory of a GPU", k.Name, i)
		}
		if err := d.use(*v); err != nil {
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

func (d *device) entry(p *program, name string) (cu.Function, error) {
	f, have := p.entries[name]
	if have {
		return f, nil
	}
	f, err := p.module.Function(name)
	if err != nil {
		return f, d.fail(err, "find the entry %s of a kernel", name)
	}
	p.entries[name] = f
	return f, nil
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
