package workload

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
)

// Fill writes the initial values of elements lo to lo+len(dst)-1 of p: uniform in ±sqrt(6/Fan), or p.Start if Fan is 0. That
// variance keeps the ReLU activations of all layers alike (He et al. 2015, uniform form). A value is a pure function of (seed,
// p.Name, element), so every rank can fill its own slice.
func Fill(dst []float32, seed uint64, p Param, lo int) {
	if p.Fan == 0 {
		for i := range dst {
			dst[i] = p.Start
		}
		return
	}
	h := fnv.New64a()
	h.Write([]byte(p.Name))
	key := mix(seed, h.Sum64())
	limit := math.Sqrt(6 / float64(p.Fan))
	for i := range dst {
		u := mix(key, uint64(lo+i)) >> 40 // 24 bits: exact in float32
		dst[i] = float32(limit * (float64(u)/(1<<23) - 1))
	}
}

// Initial gives the parameters of a model their first values, in place of Fill.
type Initial interface {
	// Fill writes those of elements lo to lo+len(dst)-1 of parameter k, in model order. Its error names the file that cannot be read.
	Fill(dst []float32, k, lo int) error
}

// mix is a hash of two words: SplitMix64's output function (Steele, Lea, Flood 2014) over their
// weighted sum.
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// shuffle permutes p at random (Fisher and Yates). It does not use Shuffle of math/rand/v2, because that may change between Go
// versions, and runs are reproducible across them. The generators of math/rand/v2 do not change.
func shuffle(p []int32, r *rand.PCG) {
	for i := len(p) - 1; i > 0; i-- {
		j, _ := bits.Mul64(r.Uint64(), uint64(i+1))
		p[i], p[j] = p[j], p[i]
	}
}
