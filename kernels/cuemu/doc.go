// Package cuemu runs the kernels' CUDA sources on the host's processor, with one fiber for each thread of a block, so that
// they can be tested without a GPU. It is made to find faults, not to be fast: see kernels/README.md.
//
// The tag cuemu builds it; it needs a C++ compiler.
package cuemu
