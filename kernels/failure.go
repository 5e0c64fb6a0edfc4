package kernels

// Failure is what a device could not do: its memory is full, its driver gave up, the hardware failed. It is no
// mistake of the program, and what is on the device is lost.
type Failure struct {
	Device string // "GPU 0 (NVIDIA H200) on node7"
	Op     string // what was asked of it: "allocate 4096 bytes"
	Why    string // its answer: "CUDA_ERROR_OUT_OF_MEMORY (2)"
}

func (f *Failure) Error() string { return f.Device + ": " + f.Op + ": " + f.Why }

// Pinner is a Device that is faster with memory that was announced: copies of it need no memory between. p stays where
// it is until Close. A Device may take only some of what it is offered.
type Pinner interface{ Pin(p []float32) error }
