package lars

import (
	_ "embed" // lars.ptx

	"fluentps/kernels/kernel"
	"fluentps/kernels/sgd"
)

//go:embed lars.ptx
var ptx string

// The n elements are the parameters of one layer. W, G, next, m and gradient are as for sgd.Momentum.
var (
	// LARSRate: V: W, G, rate. N: n. F: k, wd, trust. rate (1) becomes trust*|W| / (|k*G| + |wd*W|), with 2-norms, at
	// most 1e30. If all of W is 0, rate becomes trust.
	LARSRate = &kernel.Kernel{
		Name: "lars_rate", Tol: 8, Cost: kernel.ElementCost(1, 4, 2),
		Need: func(n kernel.Sizes) [8]int { return [8]int{n[0], n[0], 1} },
		CPU: func(a kernel.Args) {
			a.V[2].Host[0] = layerRate(a.V[0].Host, a.V[1].Host, a.N[0], a.F[0], a.F[1], a.F[2])
		},
		CUDA: &kernel.CUDA{
			PTX: ptx, Vecs: 3, Sizes: 1, Scalars: 3,
			Scratch: func(n kernel.Sizes) int { return 1 + 4*rateBlocks(n) },
			Steps: func(n kernel.Sizes) [4]kernel.Step {
				block := [3]int{kernel.GPUThreads, 1, 1}
				return [4]kernel.Step{
					{Entry: "lars_rate", Grid: [3]int{rateBlocks(n), 1, 1}, Block: block},
					{Entry: "lars_rate_sum", Grid: [3]int{1, 1, 1}, Block: block},
				}
			},
		},
		Cases: rateCases,
		Bench: kernel.Bench{Layers: kernel.Models, Scalars: kernel.Scalars{sgd.BenchPerSample, sgd.BenchDecay, kernel.BenchRate}},
	}
	// LARS: V: W, G, next, m, rate. N: n. F: lr, k, wd, mu. The step of Momentum with rate (1) times the gradient.
	LARS = &kernel.Kernel{
		Name: "lars", Tol: 4, Cost: kernel.ElementCost(1, 7, 5),
		Need: func(n kernel.Sizes) [8]int { return [8]int{n[0], n[0], n[0], n[0], 1} },
		CPU: func(a kernel.Args) {
			update(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.V[4].Host[0], a.N[0], sgd.MomentumScalars(a))
		},
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 5, Sizes: 1, Scalars: 4, Steps: kernel.ElementSteps("lars", 1)},
		Cases: updateCases,
		Bench: sgd.Bench,
	}
)

func rateBlocks(n kernel.Sizes) int {
	return max(1, min(kernel.Blocks(n[0], 8*kernel.GPUThreads), kernel.GPUBlocks))
}
