// Package kernels holds the compute kernels of the trainer and the Device that runs them.
//
// A model computes only through a Device: it allocates or wraps memory, launches kernels of the
// Table on it, and reads results back.
//
//	w, err := dev.Wrap(parameters)              // memory that a transport owns
//	y, err := dev.Alloc(rows * cols)
//	err = dev.Launch(kernels.GemmNT, kernels.Args{V: kernels.Vecs{x, w, y}, N: kernels.Sizes{rows, cols, inner}})
//	err = dev.Sync()
//
// All matrices are float32, row-major, without gaps between rows. The Go twin of a kernel (its CPU
// function) defines the correct result: every device must agree with it within the kernel's
// tolerance. Package kerneltest checks devices against float64.
//
// Each kernel has a folder of its own and a line in table.go. README.md says how to add a kernel.
package kernels
