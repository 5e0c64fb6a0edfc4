package kernels

import (
	"fluentps/kernels/batchnorm"
	"fluentps/kernels/globalavgpool"
	"fluentps/kernels/shortcutpad"
)

var (
	gpuBatchNorm = &CUDA{
		Source: batchnorm.Source, PTX: batchnorm.PTX, Vecs: 6, Sizes: 4, Scalars: 1,
		Scratch: normScratch,
		Steps:   func(n Sizes) [4]Step { return normSteps(n, "batch_norm", "batch_norm_apply") },
	}
	gpuBatchNormEval = &CUDA{
		Source: batchnorm.Source, PTX: batchnorm.PTX, Vecs: 7, Sizes: 4, Scalars: 1,
		Steps: func(n Sizes) [4]Step { return normSteps(n, "batch_norm_eval", "") },
	}
	gpuBatchNormGrad = &CUDA{
		Source: batchnorm.Source, PTX: batchnorm.PTX, Vecs: 8, Sizes: 4,
		Scratch: normScratch,
		Steps:   func(n Sizes) [4]Step { return normSteps(n, "batch_norm_grad", "batch_norm_grad_apply") },
	}
	gpuBatchNormRunning = &CUDA{
		Source: batchnorm.Source, PTX: batchnorm.PTX, Vecs: 5, Sizes: 3, Scalars: 2,
		Steps: func(n Sizes) [4]Step { return elements("batch_norm_running", n[1]) },
	}
	gpuGlobalAvgPool = &CUDA{
		Source: globalavgpool.Source, PTX: globalavgpool.PTX, Vecs: 2, Sizes: 3,
		Steps: func(n Sizes) [4]Step { return elements("global_avg_pool", 32*n[0]*n[1]) },
	}
	gpuGlobalAvgPoolGrad = &CUDA{
		Source: globalavgpool.Source, PTX: globalavgpool.PTX, Vecs: 2, Sizes: 3,
		Steps: func(n Sizes) [4]Step { return elements("global_avg_pool_grad", n[0]*n[1]*n[2]) },
	}
	gpuShortcutPad = &CUDA{
		Source: shortcutpad.Source, PTX: shortcutpad.PTX, Vecs: 2, Sizes: 5,
		Steps: func(n Sizes) [4]Step { return elements("shortcut_pad", padShape(n).Outputs()) },
	}
	gpuShortcutPadGrad = &CUDA{
		Source: shortcutpad.Source, PTX: shortcutpad.PTX, Vecs: 2, Sizes: 5,
		Steps: func(n Sizes) [4]Step { return elements("shortcut_pad_grad", padShape(n).Outputs()) },
	}
)

// normShares is in how many shares blocks take the values of a channel: enough blocks to keep a GPU busy, and at most 16
// values a thread, which batch_norm holds in registers.
func normShares(n Sizes) int {
	values := n[0] * n[2]
	return max(shares(n[1], values/gpuThreads), blocks(values, 16*gpuThreads))
}

func normScratch(n Sizes) int { return 2 * n[1] * normShares(n) }

// normSteps have the same grid: the second finds the first's results by it.
func normSteps(n Sizes, first, second string) (steps [4]Step) {
	if n[0]*n[1]*n[2] == 0 {
		return steps
	}
	grid, block := [3]int{n[1], normShares(n), 1}, [3]int{gpuThreads, 1, 1}
	steps[0] = Step{first, grid, block}
	steps[1] = Step{second, grid, block}
	return steps
}
