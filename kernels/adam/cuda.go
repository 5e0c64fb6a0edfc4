package adam

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed adam.cu
	Source string
	//go:embed adam.ptx
	PTX string
)
