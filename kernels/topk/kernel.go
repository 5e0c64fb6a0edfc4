package topk

import (
	_ "embed" // top_k.ptx

	"fluentps/kernels/kernel"
)

//go:embed top_k.ptx
var ptx string

// TopK: V: X, residual (optional), sent. N: n, k. F: threshold.
// With a residual, residual becomes residual + X, and takes X's place. sent (1 + 2k words) becomes a count and so
// many pairs of index and value, indices increasing; count and indices are uint32 as bits. Chosen are the elements
// of a magnitude above threshold, or if these are more than k or threshold is below 0, the k of largest magnitude,
// of equal ones those of lower index, NaN being the largest. Words behind the last pair stay as they are. The
// residual becomes 0 where an element is sent.
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

// blocks are few, because each adds up the counts of all.
func blocks(n kernel.Sizes) int { return max(1, min(32, kernel.Blocks(n[0], 4096))) }
