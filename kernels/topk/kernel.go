package topk

import (
	_ "embed" // top_k.ptx

	"fluentps/kernels/kernel"
)

//go:embed top_k.ptx
var ptx string

// TopK: V: X, residual (optional), sent. N: n, k. F: threshold.
// With a residual, residual first becomes residual + X and replaces X as the input. sent (1 + 2k words) becomes a
// count, then that many pairs of index and value, indices increasing. Count and indices are the bits of a uint32.
// top_k chooses the elements whose magnitude is above threshold. If these are more than k, or if threshold is below 0,
// it chooses the k elements of largest magnitude; ties go to the lower index, and NaN counts as the largest. Words
// behind the last pair do not change. The residual becomes 0 where an element is chosen.
var TopK = &kernel.Kernel{
	Name: "top_k", Tol: 0, Optional: [8]bool{1: true},
	Need: func(n kernel.Sizes) [8]int { return [8]int{n[0], n[0], words(n[1])} },
	CPU: func(a kernel.Args) {
		send(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.F[0])
	},
	CUDA: &kernel.CUDA{
		PTX: ptx, Vecs: 3, Sizes: 2, Scalars: 1,
		Scratch: func(n kernel.Sizes) int { return head + blocks(n)*(1+3*2048) },
		Steps: func(n kernel.Sizes) [4]kernel.Step {
			grid, block := [3]int{blocks(n), 1, 1}, [3]int{1024, 1, 1}
			return [4]kernel.Step{
				{Entry: "top_k", Grid: grid, Block: block}, {Entry: "top_k_second", Grid: grid, Block: block},
				{Entry: "top_k_third", Grid: grid, Block: block}, {Entry: "top_k_send", Grid: grid, Block: block},
			}
		},
	},
	Cost: func(n kernel.Sizes) (flops, bytes float64) {
		return float64(n[0]), 4 * (3*float64(n[0]) + 2*float64(n[1]))
	},
	Cases: cases,
	Bench: kernel.Bench{
		Layers:  []kernel.Layer{{Name: "mlp, 1 %", N: []int{235_146, 2352}}, {Name: "resnet20, 1 %", N: []int{269_722, 2698}}},
		Scalars: kernel.Scalars{-1},
	},
}

const head = 6 // words of scratch in front of the blocks' counts

// blocks returns a small number of blocks, because each block adds up the counts of all.
func blocks(n kernel.Sizes) int { return max(1, min(32, kernel.Blocks(n[0], 4096))) }
