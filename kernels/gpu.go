package kernels

import (
	"embed"
	"math"

	"fluentps/kernels/biasgrad"
	"fluentps/kernels/biasrelu"
	"fluentps/kernels/channelbias"
	"fluentps/kernels/fill"
	"fluentps/kernels/gemm"
	"fluentps/kernels/maxpool"
	"fluentps/kernels/sigmoidxent"
	"fluentps/kernels/softmaxxent"
)

// sources are all files that GPUs' code is made of. They are embedded here so that whatever imports this package is
// built anew when one changes: cgo alone would go on with what it once compiled of them.
//
//go:embed gpu.cuh */*.cu cuda/ptx/flags
var sources embed.FS

// gpuBlocks is how many blocks keep a large GPU busy: two for each of the 132 multiprocessors of an H100.
const gpuBlocks = 264

const gpuThreads = 256 // of a block of elementwise kernels

// GPUElementsMax is the longest vector of a GPU's kernels: they count elements with an int, in steps as long as the grid,
// and the last step must not pass its end.
const GPUElementsMax = math.MaxInt32 - 8*gpuBlocks*gpuThreads

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
	gpuBiasGrad = &CUDA{
		Source: biasgrad.Source, PTX: biasgrad.PTX, Vecs: 2, Sizes: 2,
		Scratch: func(n Sizes) int { return shareScratch(biasGradShares(n), n[1]) },
		Steps: func(n Sizes) [4]Step {
			return shared("bias_grad", "bias_grad_sum", blocks(n[1], 32), biasGradShares(n), n[1])
		},
	}
	gpuSoftmaxXent = &CUDA{
		Source: softmaxxent.Source, PTX: softmaxxent.PTX, Vecs: 5, Sizes: 2,
		Steps: func(n Sizes) [4]Step { return elements("softmax_xent", 32*n[0]) },
	}
	gpuSigmoidXent = &CUDA{
		Source: sigmoidxent.Source, PTX: sigmoidxent.PTX, Vecs: 5, Sizes: 1,
		Steps: func(n Sizes) [4]Step { return elements("sigmoid_xent", n[0]) },
	}
	gpuChannelBiasReLU = &CUDA{
		Source: channelbias.Source, PTX: channelbias.PTX, Vecs: 2, Sizes: 3,
		Steps: func(n Sizes) [4]Step { return elements("channel_bias_relu", n[0]*n[1]*n[2]) },
	}
	gpuChannelBiasGrad = &CUDA{
		Source: channelbias.Source, PTX: channelbias.PTX, Vecs: 2, Sizes: 3,
		Scratch: func(n Sizes) int { return shareScratch(channelShares(n), n[1]) },
		Steps: func(n Sizes) [4]Step {
			return shared("channel_bias_grad", "channel_bias_grad_sum", n[1], channelShares(n), n[1])
		},
	}
	gpuMaxPool = &CUDA{
		Source: maxpool.Source, PTX: maxpool.PTX, Vecs: 3, Sizes: 3,
		Steps: func(n Sizes) [4]Step { return elements("max_pool", pooled(n)) },
	}
	gpuMaxPoolGrad = &CUDA{
		Source: maxpool.Source, PTX: maxpool.PTX, Vecs: 3, Sizes: 3,
		Steps: func(n Sizes) [4]Step { return elements("max_pool_grad", n[0]*n[1]*n[2]) },
	}
)

// A reduction with too few results to keep a GPU busy is cut into shares, which a second entry adds up in their
// order. Their sums lie in scratch, behind their number.
func shared(entry, sum string, across, shares, results int) (steps [4]Step) {
	if results == 0 {
		return steps
	}
	steps[0] = Step{entry, [3]int{across, shares, 1}, [3]int{gpuThreads, 1, 1}}
	if shares > 1 {
		steps[1] = sumStep(sum, results)
	}
	return steps
}

func shareScratch(shares, results int) int {
	if shares == 1 {
		return 0
	}
	return 1 + shares*results
}

// biasGradShares gives a thread at least 32 rows, because fewer take less time than a second launch.
func biasGradShares(n Sizes) int { return shares(blocks(n[1], 32), n[0]/(8*32)) }

// channelShares does the same for the values of a channel.
func channelShares(n Sizes) int { return shares(n[1], n[0]*n[2]/(32*gpuThreads)) }

// shares is how many make gpuBlocks blocks, if there are so many blocks with one, but at most as many as are worth it.
func shares(across, worth int) int { return max(1, min(gpuBlocks/max(across, 1), worth)) }

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

// sumStep is the launch of an entry that adds up the layers of so many results, 32 a block.
func sumStep(entry string, results int) Step {
	return Step{entry, [3]int{blocks(results, 32), 1, 1}, [3]int{256, 1, 1}}
}

// blocks is how many blocks of this size cover count.
func blocks(count, size int) int { return (count + size - 1) / size }

func gpuGemm(entry string) *CUDA {
	small := entry + "_small"
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
				steps[0].Entry = small
			}
			if layers > 1 {
				steps[1] = sumStep("gemm_sum", m*cols)
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
