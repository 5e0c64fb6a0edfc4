//go:build blas

package cpu

// #cgo LDFLAGS: -lm
// #include "loops.h"
import "C"

import (
	"fluentps/kernels"
	"fluentps/kernels/batchnorm"
)

// parallelElementsMin is the number of elements from which a launch uses several threads. Smaller launches finish before
// the threads would start.
const parallelElementsMin = 1 << 16

// loop computes a kernel in C and returns true. It returns false, and does nothing, if there is no C code for the kernel.
func (d *device) loop(k *kernels.Kernel, a kernels.Args) bool {
	if d.direct.set == nil { // the loops need the same instructions
		return false
	}
	var op C.loop
	var parts int
	switch n := a.N; k {
	case kernels.BatchNorm:
		op, parts = C.LOOP_BATCH_NORM, n[1]
	case kernels.BatchNormEval:
		op, parts = C.LOOP_BATCH_NORM_EVAL, n[1]
	case kernels.BatchNormGrad:
		op, parts = C.LOOP_BATCH_NORM_GRAD, n[1]
	case kernels.BiasReLU:
		op, parts = C.LOOP_BIAS_RELU, n[0]
	case kernels.ReLUGrad:
		op, parts = C.LOOP_RELU_GRAD, n[0]*n[1]
	case kernels.BiasGrad:
		op, parts = C.LOOP_BIAS_GRAD, n[1]
	case kernels.ChannelBiasReLU:
		op, parts = C.LOOP_CHANNEL_BIAS_RELU, n[1]
	case kernels.ChannelBiasGrad:
		op, parts = C.LOOP_CHANNEL_BIAS_GRAD, n[1]
	case kernels.MaxPool:
		op, parts = C.LOOP_MAX_POOL, n[0]
	case kernels.MaxPoolGrad:
		op, parts = C.LOOP_MAX_POOL_GRAD, n[0]
	default:
		return false
	}
	if d.threads == 1 || a.V[0].Len() < parallelElementsMin {
		loopPart(op, &a, 0, parts)
	} else {
		d.parallelLoop(op, a, parts)
	}
	if k == kernels.BatchNormGrad {
		batchnorm.Running(a)
	}
	return true
}

func (d *device) parallelLoop(op C.loop, a kernels.Args, parts int) {
	parallelFor(d.threads, slicesPerThread, parts, func(_, first, last int) { loopPart(op, &a, first, last) })
}

func loopPart(op C.loop, a *kernels.Args, first, last int) {
	v := func(i int) *C.float { return pointer(a.V[i].Host) }
	C.loop_run(op, C.long(a.N[0]), C.long(a.N[1]), C.long(a.N[2]), C.long(a.N[3]), C.float(a.F[0]),
		v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7), C.long(first), C.long(last))
}
