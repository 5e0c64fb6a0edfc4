// Package kernel says what a kernel is: the row that its folder has in the table of package kernels, and what rows share.
package kernel

import "fmt"

// Kernel is the row of one kernel. Whatever lists kernels reads it here: devices, the conformance suite, the verb bench
// kernels.
type Kernel struct {
	Name string
	// CPU is the Go twin: the definition of correct. It expects arguments that Need accepts.
	CPU func(a Args)
	// CUDA is how GPUs compute it.
	CUDA *CUDA
	// Need gives the least length of each vector of a launch with these sizes. A vector that may be
	// left out is listed in Optional.
	Need     func(n Sizes) [8]int
	Optional [8]bool
	// Tol is k in the largest error k * 2^-23 * sqrt(length of the reduction) against float64,
	// relative to values above 1 and absolute below. At most 8.
	Tol float64
	// Cost estimates the work of a launch: floating point operations, and bytes moved between
	// memory and the processor when each operand travels once.
	Cost func(n Sizes) (flops, bytes float64)
	// Cases are the launches of the conformance suite, at sizes that do not fit tiles and blocks; at least one.
	Cases func() []Case
	// Bench is what the verb bench kernels times.
	Bench Bench
}

// CUDA is how GPUs compute a kernel. Each of its entries takes the kernel's first Vecs vectors
// (float *, null for one left out), its first Sizes sizes (int), its first Scalars scalars (float), and,
// where Scratch is set, memory of the device (float *).
type CUDA struct {
	PTX string // made of the folder's .cu file

	Vecs, Sizes, Scalars int

	// Scratch is how many float32 of scratch a launch needs; nil: none.
	Scratch func(n Sizes) int
	// Steps are the launches that compute the kernel, one after the other; the first without an Entry ends them.
	Steps func(n Sizes) [4]Step
}

// Step is one launch of an entry of a kernel's source.
type Step struct {
	Entry       string
	Grid, Block [3]int
}

// Vectors is what a kernel needs that takes so many vectors of n elements, n being its first size.
func Vectors(count int) func(Sizes) [8]int {
	return func(n Sizes) (need [8]int) {
		for v := range count {
			need[v] = n[0]
		}
		return need
	}
}

// ElementCost is the cost of a kernel that does flops operations and moves words float32 for each of its elements, whose
// number is the product of its first so many sizes.
func ElementCost(sizes int, flops, words float64) func(Sizes) (float64, float64) {
	return func(n Sizes) (float64, float64) {
		count := 1.
		for _, size := range n[:sizes] {
			count *= float64(size)
		}
		return flops * count, 4 * words * count
	}
}

// Check says whether a launch of k with a stays inside its vectors. Devices call it before they
// hand pointers to code that cannot check. Sizes must not be negative.
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
