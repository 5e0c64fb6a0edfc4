package sgd

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed sgd.cu
	Source string
	//go:embed sgd.ptx
	PTX string
)
