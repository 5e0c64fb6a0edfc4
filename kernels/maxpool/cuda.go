package maxpool

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed max_pool.cu
	Source string
	//go:embed max_pool.ptx
	PTX string
)
