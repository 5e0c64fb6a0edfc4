package residualadd

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed residual_add.cu
	Source string
	//go:embed residual_add.ptx
	PTX string
)
