//go:build cuda

package cuda

// #include <cuda.h>
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"gorgonia.org/cu"

	"fluentps/kernels"
)

// device computes on one GPU. Several devices, of one process or of many, may share a GPU; each has its own streams.
type device struct {
	gpu     GPU
	options Options
	ordinal cu.Device
	context cu.CUContext                    // the primary context, which libraries use too
	broken  atomic.Pointer[kernels.Failure] // the failure after which the context is useless, on whichever goroutine; nil: the context works

	compute       cu.Stream // for kernels, uploads and downloads
	toGPU, toHost cu.Stream // for copies of wrapped memory
	orderEvent    cu.Event  // recorded on one stream so that another stream waits

	allocated   []cu.DevicePtr // by Alloc
	twins       []*twin        // in ascending order of their addresses on the GPU
	arenas      []*arena       // from Place
	pinned      [][]float32    // host memory that the GPU copies directly
	staging     []*stage       // pinned memory for copies of other host memory
	latestStage int            // index in staging of the stage used last

	loaded     map[*kernels.Kernel]*program
	modules    map[string]*module // by PTX
	blas       *blas              // computes products; nil: our kernels do
	passedOver []string           // libraries that are there but do not start, and why
	scratch    cu.DevicePtr
	scratchLen int // in elements

	launched, completed int64 // launches so far, and launches that the host knows to be done

	values [parametersMax]uint64 // parameters of a launch
}

// parametersMax is the greatest number of parameters: all vectors, sizes and scalars of a kernel, and scratch.
const parametersMax = len(kernels.Vecs{}) + len(kernels.Sizes{}) + len(kernels.Scalars{}) + 1

// New returns a device on a GPU that GPUs listed.
func New(g GPU, o Options) (kernels.Device, error) {
	if err := open(); err != nil {
		return nil, err
	}
	d := &device{gpu: g, options: o, loaded: map[*kernels.Kernel]*program{}, modules: map[string]*module{}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var err error
	if d.ordinal, err = cu.GetDevice(g.Index); err != nil {
		return nil, d.fail(err, "find it")
	}
	if err := d.letWaitsSleep(); err != nil {
		return nil, err
	}
	if d.context, err = d.ordinal.RetainPrimaryCtx(); err != nil {
		return nil, d.fail(err, "make a context")
	}
	if err := d.start(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// letWaitsSleep makes waits for streams sleep, where the options ask for that. It must come before the context; another device of this
// process may have made the context already, with the same options.
func (d *device) letWaitsSleep() error {
	if !d.options.Sleep {
		return nil
	}
	if err := d.ordinal.SetPrimaryCtxFlags(cu.SchedBlockingSync); err != nil && codeOf(err) != C.CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE {
		return d.fail(err, "let waits sleep")
	}
	return nil
}

// newEvent returns an event for the order of work. Waits for it sleep where those for streams do.
func (d *device) newEvent() (cu.Event, error) {
	flags := cu.DisableTiming
	if d.options.Sleep {
		flags |= cu.BlockingSyncEvent
	}
	e, err := cu.MakeEvent(flags)
	return e, d.fail(err, "make an event")
}

func (d *device) start() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	for _, s := range []*cu.Stream{&d.compute, &d.toGPU, &d.toHost} {
		made, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return d.fail(err, "make a stream")
		}
		*s = made
	}
	var err error
	if d.orderEvent, err = d.newEvent(); err != nil {
		return err
	}
	if err := d.load(kernels.Table); err != nil {
		return err
	}
	return d.openBLAS()
}

// enter makes the device's context current on the thread, and keeps the goroutine on this thread until leave. A context
// belongs to a thread, but different goroutines may use a device one after the other.
func (d *device) enter() error {
	if broken := d.broken.Load(); broken != nil {
		return broken
	}
	runtime.LockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		runtime.UnlockOSThread()
		return d.fail(err, "use its context")
	}
	return nil
}

func (d *device) leave() { runtime.UnlockOSThread() }

// gemm names the library or the kernels that compute products.
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

// KernelSet omits the index of the GPU on its host.
func (d *device) KernelSet() string { return fmt.Sprintf("cuda, %s, gemm %s", d.gpu.Name, d.gemm()) }

// Weak is about products only: the driver compiles the kernels for the card. That there is no cuBLAS may be what the user wants.
func (d *device) Weak() string {
	if d.blas != nil {
		return ""
	}
	if d.options.Math == TF32 {
		return "device.math: tf32 has no effect without cuBLAS, and " + cmp.Or(d.PassedOver(), errNoBLAS.Error())
	}
	if len(d.passedOver) == 0 {
		return ""
	}
	return "products are computed by our own kernels, because " + d.PassedOver() +
		"; let LD_LIBRARY_PATH name a cuBLAS that fits the driver, or set device.kind: cuda with device.gemm: own"
}

// wait returns when all work of a stream is done.
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
	for _, s := range []cu.Stream{d.toGPU, d.compute, d.toHost} {
		if err := d.wait(s, "wait for kernels and copies"); err != nil {
			return err
		}
	}
	d.completed = d.launched
	for _, t := range d.twins {
		t.endFetch()
	}
	return nil
}

// Close releases all resources. If a failure has made the context useless, Close releases the context only.
func (d *device) Close() error {
	if d.context == (cu.CUContext{}) {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var failed error
	check := func(err error, what string) {
		if err != nil && failed == nil {
			failed = d.fail(err, "release %s", what)
		}
	}
	if d.broken.Load() == nil {
		check(cu.SetCurrentContext(d.context), "its context")
		d.free(check)
	}
	check(d.ordinal.ReleasePrimaryCtx(), "its context")
	d.context = cu.CUContext{}
	if d.broken.Load() != nil {
		return nil // the failure was reported when it happened
	}
	return failed
}

func (d *device) free(check func(error, string)) {
	none := cu.Stream{}
	for _, s := range []*cu.Stream{&d.toGPU, &d.compute, &d.toHost} {
		if *s != none {
			check(s.Synchronize(), "a stream")
		}
	}
	if d.blas != nil {
		d.blas.close(check)
	}
	for _, t := range d.twins {
		if !t.placed {
			check(cu.MemFree(t.memory), "memory")
		}
		check(cu.DestroyEvent(&t.copiedIn), "an event")
		check(cu.DestroyEvent(&t.copiedOut), "an event")
		check(freeHost(t.mirror), "pinned memory")
	}
	for _, s := range d.staging {
		check(cu.DestroyEvent(&s.copied), "an event")
		check(freeHost(s.memory), "pinned memory")
	}
	for _, p := range d.pinned {
		check(unpin(p), "pinned memory")
	}
	for _, a := range d.arenas {
		check(cu.MemFree(a.memory), "memory")
	}
	for _, p := range d.allocated {
		check(cu.MemFree(p), "memory")
	}
	if d.scratch != 0 {
		check(cu.MemFree(d.scratch), "scratch")
	}
	for _, m := range d.modules {
		check(m.loaded.Unload(), "a module")
	}
	if d.orderEvent != (cu.Event{}) {
		check(cu.DestroyEvent(&d.orderEvent), "an event")
	}
	for _, s := range []*cu.Stream{&d.toGPU, &d.compute, &d.toHost} {
		if *s != none {
			check(s.Destroy(), "a stream")
		}
	}
}
