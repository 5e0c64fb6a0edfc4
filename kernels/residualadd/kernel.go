package residualadd

import (
	_ "embed" // residual_add.ptx

	"fluentps/kernels/kernel"
)

//go:embed residual_add.ptx
var ptx string

// ResidualAdd: V: A, B, Y. N: n. Y becomes max(A + B, 0), and may be A or B. Its gradient is ReLUGrad.
var ResidualAdd = &kernel.Kernel{
	Name: "residual_add", Tol: 1, Cost: kernel.ElementCost(1, 2, 3), Need: kernel.Vectors(3),
	CPU:   func(a kernel.Args) { forward(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0]) },
	CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 3, Sizes: 1, Steps: kernel.ElementSteps("residual_add", 1)},
	Cases: cases,
	Bench: kernel.Bench{Layers: []kernel.Layer{
		{Name: "resnet20 group1", N: []int{2_097_152}}, {Name: "resnet20 group2", N: []int{1_048_576}}, {Name: "resnet20 group3", N: []int{524_288}},
	}},
}
