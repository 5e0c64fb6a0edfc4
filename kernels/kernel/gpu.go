package kernel

import "math"

// GPUBlocks is how many blocks keep a large GPU busy: two for each of the 132 multiprocessors of an H100.
const GPUBlocks = 264

// GPUThreads is the number of threads in a block of an elementwise kernel.
const GPUThreads = 256

// GPUElementsMax is the length of the longest vector that kernels on GPUs take. They count elements with an int, in steps
// as long as the grid, and the last step must not overflow the int.
const GPUElementsMax = math.MaxInt32 - 8*GPUBlocks*GPUThreads

// ElementSteps returns the Steps of an entry that walks over the elements. Their number is the product of the first
// `sizes` sizes.
func ElementSteps(entry string, sizes int) func(Sizes) [4]Step {
	return func(n Sizes) [4]Step {
		count := 1
		for _, size := range n[:sizes] {
			count *= size
		}
		return Elements(entry, count)
	}
}

// Elements returns the launch of an entry that walks over count elements.
func Elements(entry string, count int) (steps [4]Step) {
	if count > 0 {
		steps[0] = elementStep(entry, count)
	}
	return steps
}

func elementStep(entry string, count int) Step {
	return Step{entry, [3]int{min(Blocks(count, GPUThreads), 8*GPUBlocks), 1, 1}, [3]int{GPUThreads, 1, 1}}
}

// SplitReduction returns the launches of a reduction with too few results to keep a GPU busy. The entry computes shares of
// each result, and the entry named sum adds the shares in their order. Scratch holds the number of shares, then their sums.
func SplitReduction(entry, sum string, across, shares, results int) (steps [4]Step) {
	if results == 0 {
		return steps
	}
	steps[0] = Step{entry, [3]int{across, shares, 1}, [3]int{GPUThreads, 1, 1}}
	if shares > 1 {
		steps[1] = SumStep(sum, results)
	}
	return steps
}

// ShareScratch returns the length of the scratch of SplitReduction, in elements.
func ShareScratch(shares, results int) int {
	if shares == 1 {
		return 0
	}
	return 1 + shares*results
}

// Shares returns into how many shares to split a reduction whose grid has `across` blocks unsplit: enough for GPUBlocks
// blocks, but at least 1 and at most sharesMax.
func Shares(across, sharesMax int) int { return max(1, min(GPUBlocks/max(across, 1), sharesMax)) }

// SumStep returns the launch of an entry that adds up the shares of each result. A block adds up 32 results.
func SumStep(entry string, results int) Step {
	return Step{entry, [3]int{Blocks(results, 32), 1, 1}, [3]int{256, 1, 1}}
}

// GridMax is how many blocks a grid may have in y, and in z.
const GridMax = 65535

// Fold returns a number of blocks in y and z whose product is at least count. z is 1 if y can have them all.
func Fold(count int) (y, z int) {
	z = max(1, Blocks(count, GridMax))
	return Blocks(count, z), z
}

// Blocks returns how many blocks of this size cover count.
func Blocks(count, size int) int { return (count + size - 1) / size }
