package batchnorm

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed batch_norm.cu
	Source string
	//go:embed batch_norm.ptx
	PTX string
)
