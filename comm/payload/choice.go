package payload

import "math"

// choice finds the k elements of largest magnitude in three passes over the vector, without sorting it: each pass counts
// by some bits of the magnitude, upper bits first, and the next one looks only at those that have the bits found so far.
// The time depends on the length alone.
type choice struct {
	counts [2][1 << choiceBits]uint32 // of even and odd elements: neighbours are often alike, and an addition would wait for the last
}

// A magnitude has 31 bits: 11, 11 and 9.
const choiceBits = 11

// largest says which of v are the k of largest magnitude, 1 <= k <= len(v): those above at, and the first ties of those
// that have it. A NaN is larger than all.
func (c *choice) largest(v []float32, k int) (at uint32, ties int) {
	if k == 0 {
		return math.MaxUint32, 0
	}
	const upper, middle = 20, 9
	clear(c.counts[0][:])
	clear(c.counts[1][:])
	for i, x := range v {
		c.counts[i&1][magnitude(x)>>upper]++
	}
	bits, k := c.find(k)
	c.count(v, bits, upper, middle)
	more, k := c.find(k)
	bits = bits<<choiceBits | more
	c.count(v, bits, middle, 0)
	more, k = c.find(k)
	return bits<<middle | more, k
}

// count counts the bits from lower to upper of those magnitudes whose bits from upper on are these.
func (c *choice) count(v []float32, bits uint32, upper, lower int) {
	clear(c.counts[0][:])
	clear(c.counts[1][:])
	mask := uint32(1)<<(upper-lower) - 1
	for i, x := range v {
		if m := magnitude(x); m>>upper == bits {
			c.counts[i&1][m>>lower&mask]++
		}
	}
}

// find says in which bucket the k-th largest is, and which of those in the bucket it is, from 1.
func (c *choice) find(k int) (bucket uint32, within int) {
	for b := len(c.counts[0]) - 1; ; b-- {
		n := int(c.counts[0][b]) + int(c.counts[1][b])
		if k <= n {
			return uint32(b), k
		}
		k -= n
	}
}

// above counts the elements of a magnitude above at.
func above(v []float32, at uint32) (n int) {
	for _, x := range v {
		if magnitude(x) > at {
			n++
		}
	}
	return n
}

// magnitude is |x| as bits, which as integers have the order of the numbers.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
