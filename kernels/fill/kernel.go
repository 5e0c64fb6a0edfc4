package fill

import (
	_ "embed" // fill.ptx

	"fluentps/kernels/kernel"
)

//go:embed fill.ptx
var ptx string

// Fill: V: X. N: n. F: value. The first n elements of X become value.
var Fill = &kernel.Kernel{
	Name: "fill", Tol: 0,
	Cost:  kernel.ElementCost(1, 0, 1),
	Need:  kernel.Vectors(1),
	CPU:   func(a kernel.Args) { value(a.V[0].Host[:a.N[0]], a.F[0]) },
	CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 1, Sizes: 1, Scalars: 1, Steps: kernel.ElementSteps("fill", 1)},
	Cases: cases,
	Bench: kernel.Bench{Layers: kernel.Models, Scalars: kernel.Scalars{kernel.BenchRate}},
}
