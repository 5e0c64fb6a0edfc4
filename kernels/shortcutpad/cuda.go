package shortcutpad

import _ "embed" // the files below

// Source and PTX are the kernel for GPUs.
var (
	//go:embed shortcut_pad.cu
	Source string
	//go:embed shortcut_pad.ptx
	PTX string
)
