package cast

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed cast.cu
	Source string
	//go:embed cast.ptx
	PTX string
)
