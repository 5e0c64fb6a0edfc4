package softmaxxent

import (
	_ "embed" // softmax_xent.ptx

	"fluentps/kernels/kernel"
)

//go:embed softmax_xent.ptx
var ptx string

// SoftmaxXent: V: Z, labels, G (optional), loss, hit. N: rows, cols.
// Labels are class numbers held as float32, which is exact up to 2^24. G becomes the gradient of
// the sum of the rows' losses and may be Z itself. loss (rows) becomes each row's cross-entropy in
// nats. hit (rows) becomes 1 where the first of the largest logits is the label, else 0.
var SoftmaxXent = &kernel.Kernel{
	Name: "softmax_xent", Tol: 8, Cost: kernel.ElementCost(2, 8, 2), Optional: kernel.Marks{2: true},
	Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[1], n[0], n[0] * n[1], n[0], n[0]} },
	CPU: func(a kernel.Args) {
		losses(a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.V[4].Host, a.N[0], a.N[1])
	},
	CUDA: &kernel.CUDA{
		PTX: ptx, Vecs: 5, Sizes: 2,
		Steps: func(n kernel.Sizes) [4]kernel.Step { return kernel.Elements("softmax_xent", 32*n[0]) }, // one warp per row
	},
	Cases: cases,
	Bench: kernel.Bench{Layers: []kernel.Layer{{Name: "mlp", N: []int{128, 10}}}, Positive: kernel.Marks{1: true}},
}
