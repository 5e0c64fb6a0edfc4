package kernels

import (
	"fluentps/kernels/adam"
	"fluentps/kernels/lars"
	"fluentps/kernels/sgd"
)

// The update rules, with the arithmetic of package optim. N: n, the parameters. W are the parameters, G the sum of
// their gradients over samples, next the next parameters, which may be W itself; m and v are the rule's state, 0 at the
// start. The gradient is k*G + wd*W, with k = 1/samples and the weight decay wd.
var (
	// SGD: V: W, G, next. N: n. F: lr, k, wd. next becomes W - lr*gradient.
	SGD = &Kernel{
		Name: "sgd", CUDA: gpuSGD, Tol: 4, Cost: linear(5, 3),
		Need: vectors(3),
		CPU: func(a Args) {
			sgd.Step(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], sgd.Scalars{LR: a.F[0], K: a.F[1], Decay: a.F[2]})
		},
	}
	// Momentum: V: W, G, next, m. N: n. F: lr, k, wd, mu. m becomes mu*m + gradient, next W - lr*m.
	Momentum = &Kernel{
		Name: "momentum", CUDA: gpuMomentum, Tol: 4, Cost: linear(7, 5),
		Need: vectors(4),
		CPU: func(a Args) {
			sgd.Momentum(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.N[0], momentumScalars(a))
		},
	}
	// Nesterov: V: W, G, next, m. N: n. F: lr, k, wd, mu. m becomes mu*m + gradient, next W - lr*(gradient + mu*m).
	Nesterov = &Kernel{
		Name: "nesterov", CUDA: gpuNesterov, Tol: 4, Cost: linear(9, 5),
		Need: vectors(4),
		CPU: func(a Args) {
			sgd.Nesterov(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.N[0], momentumScalars(a))
		},
	}
	// Adam: V: W, G, next, m, v, constants. N: n. F: k, wd, rate, root.
	// constants (5) are beta1, 1-beta1, beta2, 1-beta2, epsilon; in step t, from 1, rate is lr/(1-beta1^t) and root
	// 1/sqrt(1-beta2^t). m becomes beta1*m + (1-beta1)*gradient, v beta2*v + (1-beta2)*gradient^2, and next
	// W - rate*m / (root*sqrt(v) + epsilon).
	Adam = &Kernel{
		Name: "adam", CUDA: gpuAdam, Tol: 8, Cost: linear(16, 7),
		Need: func(n Sizes) [8]int { return [8]int{n[0], n[0], n[0], n[0], n[0], adam.Constants} },
		CPU: func(a Args) {
			adam.Step(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.V[4].Host, a.V[5].Host, a.N[0],
				adam.Scalars{K: a.F[0], Decay: a.F[1], Rate: a.F[2], Root: a.F[3]})
		},
	}
	// LARSRate: V: W, G, rate. N: n. F: k, wd, trust. rate (1) becomes trust*|W| / (|k*G| + |wd*W|) of 2-norms, at
	// most 1e30, or trust where all of W is 0. The elements are the parameters of one layer.
	LARSRate = &Kernel{
		Name: "lars_rate", CUDA: gpuLARSRate, Tol: 8, Cost: linear(4, 2),
		Need: func(n Sizes) [8]int { return [8]int{n[0], n[0], 1} },
		CPU: func(a Args) {
			a.V[2].Host[0] = lars.Rate(a.V[0].Host, a.V[1].Host, a.N[0], a.F[0], a.F[1], a.F[2])
		},
	}
	// LARS: V: W, G, next, m, rate. N: n. F: lr, k, wd, mu. Momentum with rate (1) times the gradient.
	LARS = &Kernel{
		Name: "lars", CUDA: gpuLARS, Tol: 4, Cost: linear(7, 5),
		Need: func(n Sizes) [8]int { return [8]int{n[0], n[0], n[0], n[0], 1} },
		CPU: func(a Args) {
			lars.Step(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.V[3].Host, a.V[4].Host[0], a.N[0], momentumScalars(a))
		},
	}
)

func momentumScalars(a Args) sgd.Scalars {
	return sgd.Scalars{LR: a.F[0], K: a.F[1], Decay: a.F[2], Momentum: a.F[3]}
}

// vectors is what a kernel needs that takes so many vectors of n elements.
func vectors(count int) func(Sizes) [8]int {
	return func(n Sizes) (need [8]int) {
		for v := range count {
			need[v] = n[0]
		}
		return need
	}
}
