package sumofparts

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed sum_of_parts.cu
	Source string
	//go:embed sum_of_parts.ptx
	PTX string
)
