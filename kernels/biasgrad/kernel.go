package biasgrad

import (
	_ "embed" // bias_grad.ptx

	"fluentps/kernels/kernel"
)

//go:embed bias_grad.ptx
var ptx string

// BiasGrad: V: dY, db. N: rows, cols. db (cols) becomes the column sums of dY.
var BiasGrad = &kernel.Kernel{
	Name: "bias_grad", Tol: 8, Cost: kernel.ElementCost(2, 1, 1),
	Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1], n[1]} },
	CPU:  func(a kernel.Args) { sum(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1]) },
	CUDA: &kernel.CUDA{
		PTX: ptx, Vecs: 2, Sizes: 2,
		Scratch: func(n kernel.Sizes) int { return kernel.ShareScratch(shares(n), n[1]) },
		Steps: func(n kernel.Sizes) [4]kernel.Step {
			return kernel.SplitReduction("bias_grad", "bias_grad_sum", kernel.Blocks(n[1], 32), shares(n), n[1])
		},
	},
	Cases: cases,
	Bench: kernel.Bench{Layers: kernel.DenseOutputs},
}

// shares gives each thread at least 32 rows, because fewer take less time than a second launch.
func shares(n kernel.Sizes) int { return kernel.Shares(kernel.Blocks(n[1], 32), n[0]/(8*32)) }
