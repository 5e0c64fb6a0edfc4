package fill

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed fill.cu
	Source string
	//go:embed fill.ptx
	PTX string
)
