package kernel

import "math"

// GPUBlocks is how many blocks keep a large GPU busy: two for each of the 132 multiprocessors of an H100.
const GPUBlocks = 264

// GPUThreads are those of a block of elementwise kernels.
const GPUThreads = 256

// GPUElementsMax is the longest vector of a GPU's kernels: they count elements with an int, in steps as long as the grid,
// and the last step must not pass its end.
const GPUElementsMax = math.MaxInt32 - 8*GPUBlocks*GPUThreads

// ElementSteps launches an entry that walks over the elements, whose number is the product of the first so many sizes.
func ElementSteps(entry string, sizes int) func(Sizes) [4]Step {
	return func(n Sizes) [4]Step {
		count := 1
		for _, size := range n[:sizes] {
			count *= size
		}
		return Elements(entry, count)
	}
}

// Elements is the launch of an entry that walks over so many elements.
func Elements(entry string, count int) (steps [4]Step) {
	if count > 0 {
		steps[0] = elementStep(entry, count)
	}
	return steps
}

func elementStep(entry string, count int) Step {
	return Step{entry, [3]int{min(Blocks(count, GPUThreads), 8*GPUBlocks), 1, 1}, [3]int{GPUThreads, 1, 1}}
}

// Shared is a reduction with too few results to keep a GPU busy: it is cut into shares, which a second entry adds up in
// their order. Their sums lie in scratch, behind their number.
func Shared(entry, sum string, across, shares, results int) (steps [4]Step) {
	if results == 0 {
		return steps
	}
	steps[0] = Step{entry, [3]int{across, shares, 1}, [3]int{GPUThreads, 1, 1}}
	if shares > 1 {
		steps[1] = SumStep(sum, results)
	}
	return steps
}

// ShareScratch is the scratch of Shared, in elements.
func ShareScratch(shares, results int) int {
	if shares == 1 {
		return 0
	}
	return 1 + shares*results
}

// Shares is how many make GPUBlocks blocks, if there are so many blocks with one, but at most as many as are worth it.
func Shares(across, worth int) int { return max(1, min(GPUBlocks/max(across, 1), worth)) }

// SumStep is the launch of an entry that adds up the layers of so many results, 32 a block.
func SumStep(entry string, results int) Step {
	return Step{entry, [3]int{Blocks(results, 32), 1, 1}, [3]int{256, 1, 1}}
}

// Blocks is how many blocks of this size cover count.
func Blocks(count, size int) int { return (count + size - 1) / size }
