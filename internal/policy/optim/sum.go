package optim

import "fmt"

// sumBlock is the number of elements that are added up at once, so that the partial sum stays in the first-level cache.
const sumBlock = 4096

// Sum is dst = parts[0] + parts[1] + ..., added in that order, over vectors of equal length; other lengths panic. There must be at
// least one part. dst may be the first part, but must not overlap the others. Equal inputs give equal bits, wherever the vectors
// are cut. Sum returns the largest magnitude of the sums, as bits.
func Sum(dst []float32, parts ...[]float32) (top uint32) {
	for _, p := range parts {
		if len(p) != len(dst) {
			panic(fmt.Sprintf("optim: sum of %d elements into %d", len(p), len(dst)))
		}
	}
	if len(parts) == 1 {
		copy(dst, parts[0])
		return topPass(dst)
	}
	for lo := 0; lo < len(dst); lo += sumBlock {
		hi := min(lo+sumBlock, len(dst))
		d := dst[lo:hi]
		of := sumPass(d, parts[0][lo:hi], parts[1][lo:hi], 1, false)
		for _, p := range parts[2:] {
			of = sumPass(d, d, p[lo:hi], 1, false)
		}
		top = max(top, of)
	}
	return top
}
