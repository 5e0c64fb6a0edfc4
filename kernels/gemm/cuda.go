package gemm

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed gemm.cu
	Source string
	//go:embed gemm.ptx
	PTX string
)
