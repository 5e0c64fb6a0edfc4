package cast

import (
	_ "embed" // cast.ptx

	"fluentps/kernels/kernel"
)

//go:embed cast.ptx
var ptx string

// Float32 words hold the halves as bits. So the bytes of the words are the bytes that the codecs of package payload send.
var (
	// ToFloat16: V: X, H. N: n. H ((n+1)/2 words, two halves each, the first in the lower bits) becomes the elements
	// of X rounded to binary16, ties to even. If n is odd, the upper half of the last word becomes 0.
	ToFloat16 = packing("to_float16", packFloat16, float16)
	// FromFloat16: V: H, X. N: n. X becomes the values of the halves that ToFloat16 writes.
	FromFloat16 = unpacking("from_float16", unpackFloat16, float16)
	// ToBFloat16 and FromBFloat16 are the same for bfloat16, the upper half of a float32.
	ToBFloat16   = packing("to_bfloat16", packBFloat16, bfloat16)
	FromBFloat16 = unpacking("from_bfloat16", unpackBFloat16, bfloat16)
)

// packing is a kernel whose threads each write one word, from two elements. The threads of unpacking each write one element.
func packing(name string, twin func(h, x []float32, n int), f format16) *kernel.Kernel {
	k := row(name, twin, func(n kernel.Sizes) [4]kernel.Step { return kernel.Elements(name, words(n[0])) })
	k.Need = func(n kernel.Sizes) [8]int { return [8]int{n[0], words(n[0])} }
	k.Cases = func() []kernel.Case { return packCases(f) }
	return k
}

func unpacking(name string, twin func(x, h []float32, n int), f format16) *kernel.Kernel {
	k := row(name, twin, kernel.ElementSteps(name, 1))
	k.Need = func(n kernel.Sizes) [8]int { return [8]int{words(n[0]), n[0]} }
	k.Cases = func() []kernel.Case { return unpackCases(f) }
	return k
}

func row(name string, twin func(dst, src []float32, n int), steps func(kernel.Sizes) [4]kernel.Step) *kernel.Kernel {
	return &kernel.Kernel{
		Name: name, Tol: 0, Cost: kernel.ElementCost(1, 1, 1.5),
		CPU:   func(a kernel.Args) { twin(a.V[1].Host, a.V[0].Host, a.N[0]) },
		CUDA:  &kernel.CUDA{PTX: ptx, Vecs: 2, Sizes: 1, Steps: steps},
		Bench: kernel.Bench{Layers: kernel.Models},
	}
}
