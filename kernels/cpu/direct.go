//go:build blas

package cpu

// #cgo CFLAGS: -O3
// #include "conv.h"
import "C"

import (
	"slices"

	"fluentps/kernels"
	"fluentps/kernels/convolution"
)

// direct computes convolutions without a matrix of windows.
type direct struct {
	set     *C.conv_set // nil: there is no C code for this processor
	shape   C.conv_shape
	packed  []float32
	scratch [][]float32 // by thread
}

// newDirect chooses the fastest instruction set up to a level.
func newDirect(most Level) direct {
	for _, set := range instructionSets() {
		if Level(set.level) <= most {
			return direct{set: set}
		}
	}
	return direct{}
}

// ownLevelMax returns the highest level of our C code that this processor can run.
func ownLevelMax() Level {
	if sets := instructionSets(); len(sets) > 0 {
		return Level(sets[0].level)
	}
	return Scalar
}

// convolve computes a convolution and returns true. It returns false, and does nothing, if the C code does not support it.
func (d *device) convolve(k *kernels.Kernel, a kernels.Args) bool {
	s := convolution.ShapeOf(a.N)
	rows, cols := s.Shape.Outputs()
	if d.direct.set == nil || s.Kernel > C.CONV_MAX_KERNEL || min(s.Images, s.Channels, s.Filters, rows, cols) == 0 {
		return false
	}
	d.direct.shape = C.conv_shape{
		images: C.long(s.Images), channels: C.long(s.Channels), height: C.long(s.Height), width: C.long(s.Width),
		filters: C.long(s.Filters), kernel: C.long(s.Kernel), stride: C.long(s.Stride), pad: C.long(s.Pad),
		out_height: C.long(rows), out_width: C.long(cols),
	}
	x, y, z := a.V[0].Host, a.V[1].Host, a.V[2].Host
	switch k {
	case kernels.ConvForward:
		d.direct.run(d.threads, C.CONV_FORWARD, s.Images, x, d.direct.pack(C.CONV_FORWARD, y), z, 0)
	case kernels.ConvBackwardData:
		d.direct.run(d.threads, C.CONV_BACKWARD_DATA, s.Images, x, d.direct.pack(C.CONV_BACKWARD_DATA, y), z, a.F[0])
	case kernels.ConvBackwardFilter:
		d.direct.run(d.threads, C.CONV_BACKWARD_FILTER, s.Channels, x, y, z, 0)
	}
	return true
}

func (c *direct) pack(kind C.conv_kind, w []float32) []float32 {
	c.packed = resized(c.packed, int(C.conv_packed(c.set, kind, &c.shape)))
	C.conv_pack(c.set, kind, &c.shape, pointer(w), pointer(c.packed))
	return c.packed
}

// run computes n parts with at most threadsMax threads.
func (c *direct) run(threadsMax int, kind C.conv_kind, n int, x, y, z []float32, beta float32) {
	threads := min(threadsMax, n)
	need := int(C.conv_scratch(c.set, kind, &c.shape))
	for len(c.scratch) < threads {
		c.scratch = append(c.scratch, nil)
	}
	for t := range threads {
		c.scratch[t] = resized(c.scratch[t], need)
	}
	if threads == 1 {
		c.part(kind, 0, n, x, y, z, beta, c.scratch[0])
		return
	}
	c.parallel(threads, kind, n, x, y, z, beta)
}

// parallel is a function of its own, so that only launches with several threads allocate memory.
func (c *direct) parallel(threads int, kind C.conv_kind, n int, x, y, z []float32, beta float32) {
	slicesEach := slicesPerThread
	if kind == C.CONV_BACKWARD_FILTER { // each slice transposes dY again
		slicesEach = 1
	}
	parallelFor(threads, slicesEach, n, func(t, first, last int) { c.part(kind, first, last, x, y, z, beta, c.scratch[t]) })
}

func (c *direct) part(kind C.conv_kind, first, last int, x, y, z []float32, beta float32, scratch []float32) {
	C.conv_run(c.set, kind, &c.shape, pointer(x), pointer(y), pointer(z), C.float(beta), C.long(first), C.long(last), pointer(scratch))
}

// resized returns n elements with undefined values, in p's memory if they fit.
func resized(p []float32, n int) []float32 { return slices.Grow(p[:0], n)[:n] }

// instructionSets returns all sets that this processor can run, the fastest first.
func instructionSets() (sets []*C.conv_set) {
	for set := C.conv_sets(0); set != nil; set = C.conv_sets(C.int(len(sets))) {
		sets = append(sets, set)
	}
	return sets
}
