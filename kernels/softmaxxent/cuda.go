package softmaxxent

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed softmax_xent.cu
	Source string
	//go:embed softmax_xent.ptx
	PTX string
)
