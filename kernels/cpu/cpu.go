// Package cpu is the device that computes on the host's processor.
//
// With the build tag blas, oneDNN or OpenBLAS computes products; the library is opened at run time. On processors with AVX2,
// C code of this package computes convolutions and the loops that take most time. Otherwise convolutions are products, and
// every other kernel is its Go twin. Within one kernel set (Set) the same inputs give the same bits, with any number of
// threads.
package cpu

import (
	"fmt"

	"fluentps/kernels"
	"fluentps/kernels/gemm"
)

type device struct {
	kernels.HostMemory
	threads  int
	openErr  error      // the error of Open, which every launch returns: there is no library of products
	products multiplier // nil: the Go twins
	direct   direct
	columns  []float32 // scratch for the matrix of windows
}

// New returns a device that uses this many threads, at least 1. If Open fails, every launch returns the error of Open.
func New(threads int) kernels.Device {
	s, err := chosen()
	d := &device{threads: max(threads, 1), openErr: err, direct: newDirect(s.set.Own)}
	spareProcessors(d.threads)
	if s.set.Products != twinProducts {
		if d.products = multiply; s.oneCaller {
			d.products = multiplyOneCaller
		}
	}
	return d
}

// twinProducts is Set.Products when the Go twins compute products.
const twinProducts = "Go"

func (d *device) Name() string {
	unit := "threads"
	if d.threads == 1 {
		unit = "thread"
	}
	return fmt.Sprintf("cpu (%s, %d %s)", Backend(), d.threads, unit)
}

func (d *device) SetThreads(n int) {
	if n = max(n, 1); n != d.threads {
		d.threads = n
		spareProcessors(n)
	}
}

func (d *device) KernelSet() string { return Backend() }

func (d *device) Weak() string { return Weak() }

func (d *device) Alloc(n int) (kernels.Vec, error) {
	if n < 0 {
		return kernels.Vec{}, fmt.Errorf("cpu: cannot allocate %d elements", n)
	}
	return kernels.Vec{Host: make([]float32, n)}, nil
}

func (d *device) Wrap(p []float32) (kernels.Vec, error) { return kernels.Vec{Host: p}, nil }

func (d *device) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := k.Check(a); err != nil {
		return err
	}
	if d.openErr != nil {
		return d.openErr
	}
	switch k {
	case kernels.GemmNN:
		return d.gemm(gemm.NN, a)
	case kernels.GemmNT:
		return d.gemm(gemm.NT, a)
	case kernels.GemmTN:
		return d.gemm(gemm.TN, a)
	case kernels.ConvForward:
		return d.convForward(a)
	case kernels.ConvBackwardData:
		return d.convBackwardData(a)
	case kernels.ConvBackwardFilter:
		return d.convBackwardFilter(a)
	case kernels.ConvBackward:
		return d.convBackward(a)
	default:
		if !d.loop(k, a) {
			k.CPU(a)
		}
	}
	return nil
}

func (d *device) gemm(op gemm.Op, a kernels.Args) error {
	return d.product(op, a.N[0], a.N[1], a.N[2], a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.F[0])
}

func (d *device) Close() error { return nil }
