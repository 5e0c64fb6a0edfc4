package topk

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed top_k.cu
	Source string
	//go:embed top_k.ptx
	PTX string
)
