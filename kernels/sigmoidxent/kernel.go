package sigmoidxent

import (
	_ "embed" // sigmoid_xent.ptx

	"fluentps/kernels/kernel"
)

//go:embed sigmoid_xent.ptx
var ptx string

// SigmoidXent: V: Z, labels, G (optional), loss, hit. N: rows. Each row has one logit and a label, 0 or 1.
// G, loss and hit are as for SoftmaxXent. A logit above 0 predicts label 1.
var SigmoidXent = &kernel.Kernel{
	Name: "sigmoid_xent", Tol: 8, Optional: kernel.Marks{2: true},
	Cost: kernel.ElementCost(1, 16, 5),
	Need: kernel.Vectors(5),
	CPU: func(a kernel.Args) {
		losses(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0])
	},
	CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 5, Sizes: 1, Steps: kernel.ElementSteps("sigmoid_xent", 1)},
	Cases: cases,
	Bench: kernel.Bench{Layers: []kernel.Layer{{Name: "logistic", N: []int{128}}}, Positive: kernel.Marks{1: true}},
}
