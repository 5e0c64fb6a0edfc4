package kernels

import (
	"fluentps/kernels/axpy"
	"fluentps/kernels/residualadd"
	"fluentps/kernels/sumofparts"
)

// Kernels of vectors, element by element. N: n, the elements.
var (
	// Axpy: V: X, Y. N: n. F: a. Y becomes Y + a*X.
	Axpy = &Kernel{
		Name: "axpy", CUDA: gpuAxpy, Tol: 2, Cost: linear(2, 3),
		Need: vectors(2),
		CPU:  func(a Args) { axpy.Add(a.V[1].Host, a.V[0].Host, a.F[0], a.N[0]) },
	}
	// Scale: V: X, Y. N: n. F: a. Y becomes a*X, and may be X itself.
	Scale = &Kernel{
		Name: "scale", CUDA: gpuScale, Tol: 1, Cost: linear(1, 2),
		Need: vectors(2),
		CPU:  func(a Args) { axpy.Scale(a.V[1].Host, a.V[0].Host, a.F[0], a.N[0]) },
	}
	// ResidualAdd: V: A, B, Y. N: n. Y becomes max(A + B, 0), and may be A or B. Its gradient is ReLUGrad.
	ResidualAdd = &Kernel{
		Name: "residual_add", CUDA: gpuResidualAdd, Tol: 1, Cost: linear(2, 3),
		Need: vectors(3),
		CPU:  func(a Args) { residualadd.Forward(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0]) },
	}
	// SumOfParts: V: arena, Y. N: n, parts, stride. Y (n) becomes the sum of the parts, part p being the n
	// elements of the arena from p*stride on, added in their order. Y may be the first part.
	SumOfParts = &Kernel{
		Name: "sum_of_parts", CUDA: gpuSumOfParts, Tol: 8,
		Need: func(n Sizes) [8]int {
			if n[1] == 0 {
				return [8]int{0, n[0]}
			}
			return [8]int{(n[1]-1)*n[2] + n[0], n[0]}
		},
		CPU: func(a Args) { sumofparts.Sum(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
		Cost: func(n Sizes) (flops, bytes float64) {
			size, parts := float64(n[0]), float64(n[1])
			return size * max(parts-1, 0), 4 * size * (parts + 1)
		},
	}
)

// linear is the cost of a kernel that does flops operations and moves words float32 for each of n elements.
func linear(flops, words float64) func(Sizes) (float64, float64) {
	return func(n Sizes) (float64, float64) { return flops * float64(n[0]), 4 * words * float64(n[0]) }
}
