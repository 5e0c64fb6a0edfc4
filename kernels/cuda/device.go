//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// device computes on one GPU. Several of them, of one process or of many, may share a GPU; each has its own streams.
type device struct {
	gpu     GPU
	options Options
	ordinal cu.Device
	context cu.CUContext // the primary one, which libraries use, too
	broken  *kernels.Failure

	compute cu.Stream // kernels, uploads, downloads
	in, out cu.Stream // copies of wrapped memory to the GPU and to the host
	order   cu.Event  // recorded on one stream so that another waits

	memory  []cu.DevicePtr // what Alloc gave
	twins   []*twin        // by address on the GPU
	arenas  []*arena       // what Place gave
	pinned  [][]float32    // host memory that copies reach without a stop
	staging []*stage       // pinned memory for what else is copied
	turn    int            // whose turn of staging it is

	loaded  map[*kernels.Kernel]*program
	modules map[string]cu.Module // by PTX
	blas    *blas                // computes products; nil: our kernels do
	scratch cu.DevicePtr
	room    int // of scratch, in elements

	launched, passed int64 // launches so far, and those that the host knows to be over

	values    [parametersMax]uint64 // parameters of a launch: each in 8 bytes, which is what package cu reads
	addresses [parametersMax]unsafe.Pointer
}

// parametersMax is all vectors, sizes and scalars that a kernel may have, and scratch.
const parametersMax = len(kernels.Vecs{}) + len(kernels.Sizes{}) + len(kernels.Scalars{}) + 1

// New is a device on a GPU that GPUs listed.
func New(g GPU, o Options) (kernels.Device, error) {
	if err := open(); err != nil {
		return nil, err
	}
	d := &device{gpu: g, options: o, loaded: map[*kernels.Kernel]*program{}, modules: map[string]cu.Module{}}
	for i := range d.addresses {
		d.addresses[i] = unsafe.Pointer(&d.values[i])
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var err error
	if d.ordinal, err = cu.GetDevice(g.Index); err != nil {
		return nil, d.fail(err, "find it")
	}
	if d.context, err = d.ordinal.RetainPrimaryCtx(); err != nil {
		return nil, d.fail(err, "make a context")
	}
	if err := d.start(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *device) start() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	for _, s := range []*cu.Stream{&d.compute, &d.in, &d.out} {
		made, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return d.fail(err, "make a stream")
		}
		*s = made
	}
	var err error
	if d.order, err = cu.MakeEvent(cu.DisableTiming); err != nil {
		return d.fail(err, "make an event")
	}
	if err := d.load(kernels.Table); err != nil {
		return err
	}
	return d.openBLAS()
}

// enter makes the context that of the thread, which stays the goroutine's until leave: a device may go from goroutine to
// goroutine, and a context belongs to a thread.
func (d *device) enter() error {
	if d.broken != nil {
		return d.broken
	}
	runtime.LockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		runtime.UnlockOSThread()
		return d.fail(err, "use its context")
	}
	return nil
}

func (d *device) leave() { runtime.UnlockOSThread() }

// gemm names what computes products.
func (d *device) gemm() string {
	gemm := Own
	if d.blas != nil {
		gemm = CuBLAS + " " + d.blas.version
		if d.options.Math == TF32 {
			gemm += " in " + TF32
		}
	}
	return gemm
}

func (d *device) Name() string {
	return fmt.Sprintf("cuda (%s, GPU %d, gemm %s)", d.gpu.Name, d.gpu.Index, d.gemm())
}

// KernelSet leaves out which GPU of its host it is.
func (d *device) KernelSet() string { return fmt.Sprintf("cuda, %s, gemm %s", d.gpu.Name, d.gemm()) }

// Weak has nothing to say: kernels are compiled for the card.
func (d *device) Weak() string { return "" }

// wait returns when all that was asked of a stream is done.
func (d *device) wait(s cu.Stream, op string) error {
	if err := s.Synchronize(); err != nil {
		return d.fail(err, "%s", op)
	}
	return nil
}

func (d *device) Sync() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	for _, s := range []cu.Stream{d.in, d.compute, d.out} {
		if err := d.wait(s, "wait for kernels and copies"); err != nil {
			return err
		}
	}
	d.passed = d.launched
	for _, t := range d.twins {
		t.land()
	}
	return nil
}

// Close gives everything back. After a failure that leaves the context useless only the context can be.
func (d *device) Close() error {
	if d.context == (cu.CUContext{}) {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var failed error
	check := func(err error, what string) {
		if err != nil && failed == nil {
			failed = d.fail(err, "give back %s", what)
		}
	}
	if d.broken == nil {
		check(cu.SetCurrentContext(d.context), "its context")
		d.free(check)
	}
	check(d.ordinal.ReleasePrimaryCtx(), "its context")
	d.context = cu.CUContext{}
	if d.broken != nil {
		return nil // the failure was reported when it happened
	}
	return failed
}

func (d *device) free(check func(error, string)) {
	none := cu.Stream{}
	for _, s := range []*cu.Stream{&d.in, &d.compute, &d.out} {
		if *s != none {
			check(s.Synchronize(), "a stream")
		}
	}
	d.closeBLAS(check)
	for _, t := range d.twins {
		if !t.placed {
			check(cu.MemFree(t.memory), "memory")
		}
		check(cu.DestroyEvent(&t.came), "an event")
		check(cu.DestroyEvent(&t.went), "an event")
		check(freeHost(t.mirror), "pinned memory")
	}
	for _, s := range d.staging {
		check(cu.DestroyEvent(&s.free), "an event")
		check(freeHost(s.memory), "pinned memory")
	}
	for _, p := range d.pinned {
		check(unpin(p), "pinned memory")
	}
	for _, a := range d.arenas {
		check(cu.MemFree(a.memory), "memory")
	}
	for _, p := range d.memory {
		check(cu.MemFree(p), "memory")
	}
	if d.scratch != 0 {
		check(cu.MemFree(d.scratch), "scratch")
	}
	for _, m := range d.modules {
		check(m.Unload(), "a module")
	}
	if d.order != (cu.Event{}) {
		check(cu.DestroyEvent(&d.order), "an event")
	}
	for _, s := range []*cu.Stream{&d.in, &d.compute, &d.out} {
		if *s != none {
			check(s.Destroy(), "a stream")
		}
	}
}
