package biasrelu

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed bias_relu.cu
	Source string
	//go:embed bias_relu.ptx
	PTX string
)
