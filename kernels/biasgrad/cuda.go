package biasgrad

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed bias_grad.cu
	Source string
	//go:embed bias_grad.ptx
	PTX string
)
