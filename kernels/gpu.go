package kernels

import (
	"fluentps/kernels/biasrelu"
	"fluentps/kernels/fill"
	"fluentps/kernels/gemm"
)

// gpuBlocks is how many blocks keep a large GPU busy: two for each of the 132 multiprocessors of an H100.
const gpuBlocks = 264

const gpuThreads = 256 // of a block of elementwise kernels

var (
	gpuFill = &CUDA{
		Source: fill.Source, PTX: fill.PTX, Vecs: 1, Sizes: 1, Scalars: 1,
		Steps: func(n Sizes) [4]Step { return elements("fill", n[0]) },
	}
	gpuBiasReLU = &CUDA{
		Source: biasrelu.Source, PTX: biasrelu.PTX, Vecs: 2, Sizes: 2,
		Steps: func(n Sizes) [4]Step { return elements("bias_relu", n[0]*n[1]) },
	}
	gpuReLUGrad = &CUDA{
		Source: biasrelu.Source, PTX: biasrelu.PTX, Vecs: 2, Sizes: 2,
		Steps: func(n Sizes) [4]Step { return elements("relu_grad", n[0]*n[1]) },
	}
)

// elements is the launch of an entry that walks over so many elements.
func elements(entry string, count int) (steps [4]Step) {
	if count > 0 {
		steps[0] = elementStep(entry, count)
	}
	return steps
}

func elementStep(entry string, count int) Step {
	return Step{entry, [3]int{min(blocks(count, gpuThreads), 8*gpuBlocks), 1, 1}, [3]int{gpuThreads, 1, 1}}
}

// blocks is how many blocks of this size cover count.
func blocks(count, size int) int { return (count + size - 1) / size }

func gpuGemm(entry string) *CUDA {
	return &CUDA{
		Source: gemm.Source, PTX: gemm.PTX, Vecs: 4, Sizes: 3, Scalars: 1,
		Scratch: func(n Sizes) int {
			if _, layers := gemmTiles(n); layers > 1 {
				return 1 + layers*n[0]*n[1]
			}
			return 0
		},
		Steps: func(n Sizes) (steps [4]Step) {
			m, cols := n[0], n[1]
			if m == 0 || cols == 0 {
				return steps
			}
			size, layers := gemmTiles(n)
			steps[0] = Step{entry, [3]int{blocks(cols, size), blocks(m, size), layers}, [3]int{256, 1, 1}}
			if size == 32 {
				steps[0].Entry += "_small"
			}
			if layers > 1 {
				steps[1] = elementStep("gemm_sum", m*cols)
			}
			return steps
		},
	}
}

// gemmTiles chooses the side of the tiles of C, and in how many parts the terms are summed: large tiles read the
// operands less often, but few tiles leave most of a GPU idle.
func gemmTiles(n Sizes) (size, layers int) {
	m, cols, terms := n[0], n[1], n[2]
	if blocks(m, 64)*blocks(cols, 64) >= gpuBlocks/2 {
		return 64, 1
	}
	tiles := max(1, blocks(m, 32)*blocks(cols, 32))
	return 32, max(1, min(gpuBlocks/tiles, terms/64, 32))
}
