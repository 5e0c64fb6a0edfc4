package kernels

// Failure is the error of a device that could not do what it was asked: its memory is full, its driver failed, or its
// hardware failed. It is not a bug of the program. The contents of the device's memory are lost.
type Failure struct {
	Device string // "GPU 0 (NVIDIA H200) on node7"
	Op     string // the request: "allocate 4096 bytes"
	Why    string // the device's answer: "CUDA_ERROR_OUT_OF_MEMORY (2)"
}

func (f *Failure) Error() string { return f.Device + ": " + f.Op + ": " + f.Why }

// Pinner is a Device that copies announced host memory directly, without an intermediate buffer. The caller must not move
// or free p until Close. A Device may decline some of the memory; copies of it then stay slower.
type Pinner interface{ Pin(p []float32) error }
