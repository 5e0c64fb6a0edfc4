package axpy

import (
	_ "embed" // axpy.ptx

	"fluentps/kernels/kernel"
)

//go:embed axpy.ptx
var ptx string

var (
	// Axpy: V: X, Y. N: n. F: a. Y becomes Y + a*X.
	Axpy = &kernel.Kernel{
		Name: "axpy", Tol: 2, Cost: kernel.ElementCost(1, 2, 3), Need: kernel.Vectors(2),
		CPU:   func(a kernel.Args) { add(a.V[1].Host, a.V[0].Host, a.F[0], a.N[0]) },
		CUDA:  cuda("axpy"),
		Cases: addCases,
		Bench: bench,
	}
	// Scale: V: X, Y. N: n. F: a. Y becomes a*X, and may be X itself.
	Scale = &kernel.Kernel{
		Name: "scale", Tol: 1, Cost: kernel.ElementCost(1, 1, 2), Need: kernel.Vectors(2),
		CPU:   func(a kernel.Args) { scale(a.V[1].Host, a.V[0].Host, a.F[0], a.N[0]) },
		CUDA:  cuda("scale"),
		Cases: scaleCases,
		Bench: bench,
	}
	bench = kernel.Bench{Layers: kernel.Models, Scalars: kernel.Scalars{kernel.BenchRate}}
)

func cuda(entry string) *kernel.CUDA {
	return &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 1, Scalars: 1, Steps: kernel.ElementSteps(entry, 1)}
}
