// Package sumofparts holds the kernel sum_of_parts.
package sumofparts

// block is how many elements are added up at once, so that their partial sums stay in the first-level cache.
const block = 4096

// sum sets y (n elements) to the sum of the parts of arena, added in their order. Part p begins at
// element p*stride. y may be the first part. With no parts the sum is 0.
func sum(y, arena []float32, n, parts, stride int) {
	if parts == 0 {
		clear(y[:n])
		return
	}
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		sum := y[lo:hi]
		copy(sum, arena[lo:hi])
		for p := 1; p < parts; p++ {
			part := arena[p*stride+lo : p*stride+hi]
			for i, v := range part[:len(sum)] {
				sum[i] += v
			}
		}
	}
}
