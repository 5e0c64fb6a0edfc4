package lars

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed lars.cu
	Source string
	//go:embed lars.ptx
	PTX string
)
