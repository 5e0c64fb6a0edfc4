package gemm

import (
	_ "embed" // gemm.ptx

	"fluentps/kernels/kernel"
)

//go:embed gemm.ptx
var ptx string

// Matrix products. V: A, B, C, bias (optional, n elements). N: m, n, k. F: beta.
// C (m x n) becomes A·B + beta*C + bias, where bias is added to every row. With beta 0, C is not read.
var (
	GemmNN = row("gemm_nn", NN,
		[]kernel.Layer{{Name: "mlp fc2", N: []int{128, 256, 128}}, {Name: "mlp fc3", N: []int{128, 128, 10}},
			{Name: "lenet fc1", N: []int{128, 400, 120}}, {Name: "resnet20 fc", N: []int{128, 64, 10}}})
	GemmNT = row("gemm_nt", NT,
		[]kernel.Layer{{Name: "mlp fc1", N: []int{128, 256, 784}}, {Name: "mlp fc2", N: []int{128, 128, 256}},
			{Name: "mlp fc3", N: []int{128, 10, 128}},
			{Name: "lenet fc1", N: []int{128, 120, 400}}, {Name: "resnet20 fc", N: []int{128, 10, 64}}})
	GemmTN = row("gemm_tn", TN,
		[]kernel.Layer{{Name: "mlp fc1", N: []int{256, 784, 128}}, {Name: "mlp fc2", N: []int{128, 256, 128}},
			{Name: "mlp fc3", N: []int{10, 128, 128}},
			{Name: "lenet fc1", N: []int{120, 400, 128}}, {Name: "resnet20 fc", N: []int{10, 64, 128}}})
)

// row returns the row of one form of the product. A dense layer uses NT forward, NN for the gradient of its input and TN for
// the gradient of its weights.
func row(name string, op Op, layers []kernel.Layer) *kernel.Kernel {
	return &kernel.Kernel{
		Name: name, Tol: 8, Optional: kernel.Marks{3: true},
		Need: func(n kernel.Sizes) kernel.Counts { return kernel.Counts{n[0] * n[2], n[1] * n[2], n[0] * n[1], n[1]} },
		CPU: func(a kernel.Args) {
			Rows(op, 0, a.N[0], a.N[0], a.N[1], a.N[2], a.V[0].Host, a.V[1].Host, a.V[2].Host, a.V[3].Host, a.F[0])
		},
		CUDA: cuda(name),
		Cost: func(n kernel.Sizes) (flops, bytes float64) {
			m, c, k := float64(n[0]), float64(n[1]), float64(n[2])
			return 2 * m * c * k, 4 * (m*k + k*c + 2*m*c)
		},
		Cases: func() []kernel.Case { return cases(op) },
		Bench: kernel.Bench{Layers: layers},
	}
}

func cuda(entry string) *kernel.CUDA {
	small := entry + "_small"
	return &kernel.CUDA{
		PTX: ptx, Vecs: 4, Sizes: 3, Scalars: 1,
		Scratch: func(n kernel.Sizes) int {
			_, layers := tiles(n)
			return kernel.ShareScratch(layers, n[0]*n[1])
		},
		Steps: func(n kernel.Sizes) (steps [4]kernel.Step) {
			m, cols := n[0], n[1]
			if m == 0 || cols == 0 {
				return steps
			}
			size, layers := tiles(n)
			steps[0] = kernel.Step{Entry: entry, Grid: [3]int{kernel.Blocks(cols, size), kernel.Blocks(m, size), layers}, Block: [3]int{256, 1, 1}}
			if size == 32 {
				steps[0].Entry = small
			}
			if layers > 1 {
				steps[1] = kernel.SumStep("gemm_sum", m*cols)
			}
			return steps
		},
	}
}

// tiles chooses the side of the tiles of C and the number of layers among which the terms are split. Large tiles read
// the operands less often, but too few tiles leave most of a GPU idle.
func tiles(n kernel.Sizes) (size, layers int) {
	m, cols, terms := n[0], n[1], n[2]
	if kernel.Blocks(m, 64)*kernel.Blocks(cols, 64) >= kernel.GPUBlocks/2 {
		return 64, 1
	}
	count := max(1, kernel.Blocks(m, 32)*kernel.Blocks(cols, 32))
	return 32, max(1, min(kernel.GPUBlocks/count, terms/64, 32))
}
