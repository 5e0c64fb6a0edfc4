package channelbias

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed channel_bias.cu
	Source string
	//go:embed channel_bias.ptx
	PTX string
)
