package adam

import (
	_ "embed" // adam.ptx

	"fluentps/kernels/kernel"
	"fluentps/kernels/sgd"
)

//go:embed adam.ptx
var ptx string

// Adam: V: W, G, next, m, v, constants. N: n, the parameters. F: k, wd, rate, root. W, G, next and gradient as for sgd.SGD.
// constants (5) are beta1, 1-beta1, beta2, 1-beta2, epsilon. In step t, counted from 1, rate is lr/(1-beta1^t) and root is
// 1/sqrt(1-beta2^t). m becomes beta1*m + (1-beta1)*gradient, v becomes beta2*v + (1-beta2)*gradient^2, and then next
// becomes W - rate*m / (root*sqrt(v) + epsilon).
var Adam = &kernel.Kernel{
	Name: "adam", Tol: 8, Cost: kernel.ElementCost(1, 16, 7),
	Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0], n[0], n[0], n[0], n[0], Constants} },
	CPU: func(a kernel.Args) {
		update(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.V[4].Host, a.V[5].Host, a.N[0],
			scalars{K: a.F[0], Decay: a.F[1], Rate: a.F[2], Root: a.F[3]})
	},
	CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 6, Sizes: 1, Scalars: 4, Steps: kernel.ElementSteps("adam", 1)},
	Cases: cases,
	Bench: kernel.Bench{
		Layers: kernel.Models, Scalars: kernel.Scalars{sgd.BenchPerSample, sgd.BenchDecay, kernel.BenchRate, 1}, Positive: kernel.Marks{4: true},
	},
}
