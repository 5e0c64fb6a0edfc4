package kernels

import (
	"fluentps/kernels/cast"
	"fluentps/kernels/topk"
)

var gpuTopK = &CUDA{
	Source: topk.Source, PTX: topk.PTX, Vecs: 3, Sizes: 2, Scalars: 1,
	Scratch: func(n Sizes) int { return topKHead + topKBlocks(n)*(1+3*2048) },
	Steps: func(n Sizes) [4]Step {
		grid, block := [3]int{topKBlocks(n), 1, 1}, [3]int{1024, 1, 1}
		return [4]Step{
			{"top_k", grid, block}, {"top_k_second", grid, block}, {"top_k_third", grid, block}, {"top_k_send", grid, block},
		}
	},
}

const topKHead = 6 // words in front of the blocks' counts

// topKBlocks is few, because each block adds up the counts of all.
func topKBlocks(n Sizes) int { return max(1, min(32, blocks(n[0], 4096))) }

// gpuCast packs two elements a thread, or unpacks one.
func gpuCast(name string, packs bool) *CUDA {
	return &CUDA{
		Source: cast.Source, PTX: cast.PTX, Vecs: 2, Sizes: 1,
		Steps: func(n Sizes) [4]Step {
			if packs {
				return elements(name, cast.Words(n[0]))
			}
			return elements(name, n[0])
		},
	}
}
