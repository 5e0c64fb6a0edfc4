package sgd

import (
	_ "embed" // sgd.ptx

	"fluentps/kernels/kernel"
)

//go:embed sgd.ptx
var ptx string

// The update rules, with the arithmetic of package optim. N: n, the number of parameters. W are the parameters, G is the
// sum of their gradients over samples. next are the next parameters and may be W itself. m is the rule's state, 0 at
// the start. The gradient is k*G + wd*W, with k = 1/samples and the weight decay wd.
var (
	// SGD: V: W, G, next. N: n. F: lr, k, wd. next becomes W - lr*gradient.
	SGD = &kernel.Kernel{
		Name: "sgd", Tol: 4, Cost: kernel.ElementCost(1, 5, 3), Need: kernel.Vectors(3),
		CPU: func(a kernel.Args) {
			step(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], scalars{LR: a.F[0], K: a.F[1], Decay: a.F[2]})
		},
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 3, Sizes: 1, Scalars: 3, Steps: kernel.ElementSteps("sgd", 1)},
		Cases: sgdCases,
		Bench: bench,
	}
	// Momentum: V: W, G, next, m. N: n. F: lr, k, wd, mu. m becomes mu*m + gradient, then next becomes W - lr*m.
	Momentum = &kernel.Kernel{
		Name: "momentum", Tol: 4, Cost: kernel.ElementCost(1, 7, 5), Need: kernel.Vectors(4),
		CPU: func(a kernel.Args) {
			momentumStep(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.N[0], momentumScalars(a))
		},
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 4, Sizes: 1, Scalars: 4, Steps: kernel.ElementSteps("momentum", 1)},
		Cases: momentumCases,
		Bench: bench,
	}
	// Nesterov: V: W, G, next, m. N: n. F: lr, k, wd, mu. m becomes mu*m + gradient, then next becomes
	// W - lr*(gradient + mu*m).
	Nesterov = &kernel.Kernel{
		Name: "nesterov", Tol: 4, Cost: kernel.ElementCost(1, 9, 5), Need: kernel.Vectors(4),
		CPU: func(a kernel.Args) {
			nesterovStep(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.N[0], momentumScalars(a))
		},
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 4, Sizes: 1, Scalars: 4, Steps: kernel.ElementSteps("nesterov", 1)},
		Cases: nesterovCases,
		Bench: bench,
	}
)

// momentumScalars returns the scalars of a rule whose F is lr, k, wd, mu.
func momentumScalars(a kernel.Args) scalars {
	return scalars{LR: a.F[0], K: a.F[1], Decay: a.F[2], Momentum: a.F[3]}
}

// BenchPerSample and BenchDecay are k and wd when an update rule is timed.
const BenchPerSample, BenchDecay = 1. / 128, 1e-4

// bench is the bench of a rule whose F is lr, k, wd, mu.
var bench = kernel.Bench{Layers: kernel.Models, Scalars: kernel.Scalars{kernel.BenchRate, BenchPerSample, BenchDecay, 0.9}}
