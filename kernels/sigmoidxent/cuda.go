package sigmoidxent

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed sigmoid_xent.cu
	Source string
	//go:embed sigmoid_xent.ptx
	PTX string
)
