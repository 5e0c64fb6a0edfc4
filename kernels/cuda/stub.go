//go:build !cuda

package cuda

import "fluentps/kernels"

// Built says whether this binary can use GPUs.
const Built = false

// GPUs returns an error: this binary was built without CUDA.
func GPUs() ([]GPU, error) {
	return nil, unusable("this binary was built without CUDA (rebuild with make build CUDA=1)")
}

// New returns the same error as GPUs.
func New(GPU, Options) (kernels.Device, error) {
	_, err := GPUs()
	return nil, err
}
