package convolution

import _ "embed" // the files below

// The kernels for GPUs: Source and PTX of conv_forward and conv_backward_data, FilterSource and FilterPTX of
// conv_backward_filter.
var (
	//go:embed conv.cu
	Source string
	//go:embed conv.ptx
	PTX string
	//go:embed conv_backward_filter.cu
	FilterSource string
	//go:embed conv_backward_filter.ptx
	FilterPTX string
)
