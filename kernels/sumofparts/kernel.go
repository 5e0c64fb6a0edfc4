package sumofparts

import (
	_ "embed" // sum_of_parts.ptx

	"fluentps/kernels/kernel"
)

//go:embed sum_of_parts.ptx
var ptx string

// SumOfParts: V: arena, Y. N: n, parts, stride. Y (n) becomes the sum of the parts, added in their order. Part p is the
// n elements of the arena from p*stride on. Y may be the first part.
var SumOfParts = &kernel.Kernel{
	Name: "sum_of_parts", Tol: 8,
	Need: func(n kernel.Sizes) [8]int {
		if n[1] == 0 {
			return [8]int{0, n[0]}
		}
		return [8]int{(n[1]-1)*n[2] + n[0], n[0]}
	},
	CPU:  func(a kernel.Args) { sum(a.V[1].Host, a.V[0].Host, a.N[0], a.N[1], a.N[2]) },
	CUDA: &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 3, Steps: kernel.ElementSteps("sum_of_parts", 1)},
	Cost: func(n kernel.Sizes) (flops, bytes float64) {
		size, parts := float64(n[0]), float64(n[1])
		return size * max(parts-1, 0), 4 * size * (parts + 1)
	},
	Cases: cases,
	Bench: kernel.Bench{Layers: []kernel.Layer{
		{Name: "mlp, 8 workers", N: []int{235_146, 8, 235_146}}, {Name: "resnet20, 8 workers", N: []int{269_722, 8, 269_722}},
	}},
}
