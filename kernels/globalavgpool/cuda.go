package globalavgpool

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed global_avg_pool.cu
	Source string
	//go:embed global_avg_pool.ptx
	PTX string
)
