package optim

import "fmt"

// sumBlock is how many elements are added up at once: the sum so far stays in the first-level cache.
const sumBlock = 4096

// Sum is dst = parts[0] + parts[1] + ..., added in that order, over vectors of equal length, else it panics. There is at
// least one part. dst may be the first, but must overlap none of the others. Equal inputs give equal bits, wherever the
// vectors are cut.
func Sum(dst []float32, parts ...[]float32) {
	for _, p := range parts {
		if len(p) != len(dst) {
			panic(fmt.Sprintf("optim: sum of %d elements into %d", len(p), len(dst)))
		}
	}
	if len(parts) == 1 {
		copy(dst, parts[0])
		return
	}
	for lo := 0; lo < len(dst); lo += sumBlock {
		hi := min(lo+sumBlock, len(dst))
		d := dst[lo:hi]
		sumPass(d, parts[0][lo:hi], parts[1][lo:hi], 1, false)
		for _, p := range parts[2:] {
			sumPass(d, d, p[lo:hi], 1, false)
		}
	}
}
