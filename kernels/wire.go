package kernels

import (
	"fluentps/kernels/cast"
	"fluentps/kernels/topk"
)

// Kernels that make what travels smaller. Integers and halves stand in float32 words as bits, so that the bytes of
// the words are those that the codecs of package payload send.
var (
	// ToFloat16: V: X, H. N: n. H ((n+1)/2 words, two halves each, the first in the lower bits) becomes the elements
	// of X rounded to binary16, ties to even; a last half alone has zeros above it.
	ToFloat16 = castKernel("to_float16", true, cast.ToFloat16)
	// FromFloat16: V: H, X. N: n. X becomes the values of the halves that ToFloat16 writes.
	FromFloat16 = castKernel("from_float16", false, cast.FromFloat16)
	// ToBFloat16 and FromBFloat16 are the same for bfloat16, the upper half of a float32.
	ToBFloat16   = castKernel("to_bfloat16", true, cast.ToBFloat16)
	FromBFloat16 = castKernel("from_bfloat16", false, cast.FromBFloat16)

	// TopK: V: X, residual (optional), sent. N: n, k. F: threshold.
	// With a residual, residual becomes residual + X, and takes X's place. sent (1 + 2k words) becomes a count and so
	// many pairs of index and value, indices increasing; count and indices are uint32 as bits. Chosen are the elements
	// of a magnitude above threshold, or if these are more than k or threshold is below 0, the k of largest magnitude,
	// of equal ones those of lower index, NaN being the largest. Words behind the last pair stay as they are. The
	// residual becomes 0 where an element is sent.
	TopK = &Kernel{
		Name: "top_k", CUDA: gpuTopK, Tol: 0, Optional: [8]bool{1: true},
		Need: func(n Sizes) [8]int { return [8]int{n[0], n[0], topk.Words(n[1])} },
		CPU: func(a Args) {
			topk.Send(a.V[2].Host, a.V[0].Host, a.V[1].Host, a.N[0], a.N[1], a.F[0])
		},
		Cost: func(n Sizes) (flops, bytes float64) {
			return float64(n[0]), 4 * (3*float64(n[0]) + 2*float64(n[1]))
		},
	}
)

// castKernel packs elements into halves, or unpacks them.
func castKernel(name string, packs bool, twin func(dst, src []float32, n int)) *Kernel {
	return &Kernel{
		Name: name, CUDA: gpuCast(name, packs), Tol: 0, Cost: linear(1, 1.5),
		Need: func(n Sizes) [8]int {
			if packs {
				return [8]int{n[0], cast.Words(n[0])}
			}
			return [8]int{cast.Words(n[0]), n[0]}
		},
		CPU: func(a Args) { twin(a.V[1].Host, a.V[0].Host, a.N[0]) },
	}
}
