//go:build !cuda

package cuda

import "fluentps/kernels"

// Built says whether this binary can use GPUs.
const Built = false

// GPUs says that there are none for this binary.
func GPUs() ([]GPU, error) {
	return nil, unusable("this binary was built without CUDA (rebuild with make build CUDA=1)")
}

// New says the same.
func New(GPU, Options) (kernels.Device, error) {
	_, err := GPUs()
	return nil, err
}
