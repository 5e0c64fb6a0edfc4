// Package cuda is the device that computes on an NVIDIA GPU.
//
// It is built with the tag cuda; without it every call says so. A binary that has it needs no NVIDIA library to start:
// the driver is looked for when a GPU is asked for (cuload).
//
// The GPU has memory of its own. What Wrap gets is host memory with a twin on the GPU; Refresh and Fetch copy, on
// streams of their own, while kernels compute on a third one. Copies and kernels that touch the same vector are
// ordered by events; nothing else waits.
package cuda

import (
	"cmp"
	"fmt"
	"os"
)

// GPU is one that the driver shows to this process.
type GPU struct {
	Index  int // among those visible
	Name   string
	UUID   string
	Memory int64 // bytes
}

// Unusable says why this process has no GPU to compute on.
type Unusable struct{ Why string }

func (u *Unusable) Error() string { return u.Why }

func unusable(format string, args ...any) error { return &Unusable{fmt.Sprintf(format, args...)} }

// Options choose how a device computes.
type Options struct {
	Gemm string // own, cublas or auto: cublas where the library is found
	Math string // float32, or tf32: products with factors rounded to 10 bits
}

// Choices of Options.
const (
	Own    = "own"
	CuBLAS = "cublas"
	Auto   = "auto"
	TF32   = "tf32"
)

// Pick is the GPU of a process: index if that is not negative, else each process of a host takes the next one, in the
// order of local, and they begin again where there are more processes than GPUs.
func Pick(gpus []GPU, index, local int) (GPU, error) {
	if index < 0 {
		return gpus[local%len(gpus)], nil
	}
	if index >= len(gpus) {
		visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
		if set {
			visible = " (CUDA_VISIBLE_DEVICES=" + visible + ")"
		}
		return GPU{}, unusable("GPU %d wanted, %d visible on %s%s", index, len(gpus), host(), visible)
	}
	return gpus[index], nil
}

func host() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "this host")
}
