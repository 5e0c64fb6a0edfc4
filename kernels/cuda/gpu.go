// Package cuda is the device that computes on an NVIDIA GPU.
//
// The tag cuda builds it; without the tag every call returns an error. A binary with the tag needs no NVIDIA library to
// start: it opens the driver when a GPU is requested (cuload).
//
// The GPU has its own memory. Host memory that is wrapped has a twin on the GPU. Refresh and Fetch copy between the two,
// each on its own stream, while kernels compute on a third stream. Events order copies and kernels that use the same
// vector; nothing else waits.
package cuda

import (
	"cmp"
	"fmt"
	"os"
)

// GPU is a GPU that the driver shows to this process.
type GPU struct {
	Index  int // among the visible GPUs
	Name   string
	UUID   string // of the slice, where the GPU is divided (MIG)
	Memory int64  // bytes
}

// Unusable is the error of a process that has no GPU to compute on. Why is the reason.
type Unusable struct{ Why string }

func (u *Unusable) Error() string { return u.Why }

func unusable(format string, args ...any) error { return &Unusable{fmt.Sprintf(format, args...)} }

// Options choose how a device computes.
type Options struct {
	Gemm string // own, cublas, or auto: cublas if the library is found
	Math string // float32, or tf32: cuBLAS rounds the factors of products to 10 bits
	// Sleep lets a thread that waits for the GPU sleep. By default it polls, which is faster while it has a core of its own.
	Sleep bool
}

// Choices of Options.
const (
	Own    = "own"
	CuBLAS = "cublas"
	Auto   = "auto"
	TF32   = "tf32"
)

// Pick returns the GPU of a process: the GPU number index if index is not negative. Otherwise the processes of a host take
// its GPUs in turn, by local, the number of the process on its host. It fails if index is not visible.
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
