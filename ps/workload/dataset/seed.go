package dataset

import (
	"math/bits"
	"math/rand/v2"
)

// Mix is a hash of two words: SplitMix64's output function (Steele, Lea, Flood 2014) over their
// weighted sum.
func Mix(a, b uint64) uint64 {
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
