package axpy

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed axpy.cu
	Source string
	//go:embed axpy.ptx
	PTX string
)
