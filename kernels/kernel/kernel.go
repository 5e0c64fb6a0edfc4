// Package kernel defines the row that describes a kernel in the table of package kernels, and what the rows share.
package kernel

import "fmt"

// Kernel is the row of one kernel. Devices, the conformance suite and the verb bench kernels read it.
type Kernel struct {
	Name string
	// CPU is the Go twin: it defines the correct result. Its arguments must satisfy Need.
	CPU func(a Args)
	// CUDA says how GPUs compute the kernel.
	CUDA *CUDA
	// Need returns the least length of each vector of a launch with these sizes.
	Need func(n Sizes) Counts
	// Optional marks the vectors that a launch may omit.
	Optional Marks
	// Tol is k in the largest error k * 2^-23 * sqrt(length of the reduction) against float64. The error is
	// relative for values above 1 and absolute below. Tol is at most 8.
	Tol float64
	// Cost estimates the work of a launch: floating point operations, and bytes moved between
	// memory and the processor if each operand moves once.
	Cost func(n Sizes) (flops, bytes float64)
	// Cases returns the launches of the conformance suite, at least one, at sizes that do not fit tiles and blocks.
	Cases func() []Case
	// Bench says what the verb bench kernels times.
	Bench Bench
}

// CUDA says how GPUs compute a kernel. Each entry takes Vecs vectors of the kernel (float *, null for an
// absent one), its first Sizes sizes (int), its first Scalars scalars (float), and, if Scratch is set, scratch in
// the device's memory (float *).
type CUDA struct {
	PTX string // compiled from the folder's .cu file

	Vecs, Sizes, Scalars int
	// Order is by vector of the entries its number among those of the kernel, -1: always absent. nil: they are the same. It lets kernels with
	// different vectors share entries.
	Order []int

	// Scratch returns how many float32 of scratch a launch needs; nil: none.
	Scratch func(n Sizes) int
	// Steps returns the launches that compute the kernel, one after the other. The first step without an Entry ends them.
	Steps func(n Sizes) [4]Step
}

// Vector returns the i-th vector that the entries take.
func (c *CUDA) Vector(a *Args, i int) Vec {
	if c.Order == nil {
		return a.V[i]
	}
	if i = c.Order[i]; i < 0 {
		return Vec{}
	}
	return a.V[i]
}

// Step is one launch of an entry of a kernel's source.
type Step struct {
	Entry       string
	Grid, Block [3]int
}

// Vectors returns the Need of a kernel that takes count vectors of n elements. n is the kernel's first size.
func Vectors(count int) func(Sizes) Counts {
	return func(n Sizes) (need Counts) {
		for v := range count {
			need[v] = n[0]
		}
		return need
	}
}

// ElementCost returns the Cost of a kernel that does `flops` operations and moves `words` float32 for each element. The
// number of elements is the product of the first `sizes` sizes.
func ElementCost(sizes int, flops, words float64) func(Sizes) (float64, float64) {
	return func(n Sizes) (float64, float64) {
		count := 1.
		for _, size := range n[:sizes] {
			count *= float64(size)
		}
		return flops * count, 4 * words * count
	}
}

// Check returns an error if a launch of k with a would leave its vectors, or if a size is negative. Devices call it
// before they pass pointers to code that cannot check.
func (k *Kernel) Check(a Args) error {
	for i, n := range a.N {
		if n < 0 {
			return fmt.Errorf("kernels: %s: size %d is %d, must not be negative", k.Name, i, n)
		}
	}
	for i, need := range k.Need(a.N) {
		have := a.V[i].Len()
		if have >= need || (k.Optional[i] && have == 0) {
			continue
		}
		return fmt.Errorf("kernels: %s: vector %d has %d elements, sizes %v need %d", k.Name, i, have, a.N, need)
	}
	return nil
}
