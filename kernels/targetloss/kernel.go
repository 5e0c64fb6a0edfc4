package targetloss

import (
	_ "embed" // target_loss.ptx

	"fluentps/kernels/kernel"
)

//go:embed target_loss.ptx
var ptx string

var (
	// MSELoss: V: Z, targets, G (optional), loss, off. N: rows. Each row has one prediction and one target, both of any size.
	// loss becomes (z - target)^2, off |z - target|, and G the gradient of the sum of losses; G may be Z.
	MSELoss = &kernel.Kernel{
		Name: "mse_loss", Tol: 3, Optional: kernel.Marks{2: true},
		Cost: kernel.ElementCost(1, 4, 5),
		Need: kernel.Vectors(5),
		CPU: func(a kernel.Args) {
			squared(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0])
		},
		CUDA:  cuda("mse_loss", 0),
		Cases: squaredCases,
		Bench: bench,
	}
	// HuberLoss: V and N: as for MSELoss. F: delta, above 0. loss becomes half the square of z - target where its size is at most
	// delta, else delta*(|z - target| - delta/2) (Huber, Annals of Mathematical Statistics 35(1), 1964).
	HuberLoss = &kernel.Kernel{
		Name: "huber_loss", Tol: 4, Optional: kernel.Marks{2: true},
		Cost: kernel.ElementCost(1, 6, 5),
		Need: kernel.Vectors(5),
		CPU: func(a kernel.Args) {
			huber(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0], float64(a.F[0]))
		},
		CUDA:  cuda("huber_loss", 1),
		Cases: huberCases,
		Bench: huberBench,
	}
	layers     = []kernel.Layer{{Name: "linear", N: []int{128}}}
	bench      = kernel.Bench{Layers: layers}
	huberBench = kernel.Bench{Layers: layers, Scalars: kernel.Scalars{1}}
)

func cuda(entry string, scalars int) *kernel.CUDA {
	return &kernel.CUDA{PTX: ptx, Vecs: 5, Sizes: 1, Scalars: scalars, Steps: kernel.ElementSteps(entry, 1)}
}
