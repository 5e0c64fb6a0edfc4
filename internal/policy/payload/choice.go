package payload

import "math"

// choice finds the k elements of largest magnitude in three passes over the vector, without sorting it. Each pass
// counts elements by some bits of the magnitude, upper bits first; the next pass looks only at the elements that have
// the bits found so far. The time depends only on the length.
type choice struct {
	// counts of even and of odd elements: neighbours often fall into one bucket, and its increments would wait for each other.
	counts [2][1 << choiceBits]uint32
}

// A magnitude has 31 bits: 11, 11 and 9.
const choiceBits = 11

// largest finds the k elements of v of largest magnitude, 1 <= k <= len(v): all elements of a magnitude above at, and
// the first ties elements whose magnitude is at. A NaN is larger than every number.
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

// count counts, by the bits from lower to upper, the magnitudes whose bits from upper on equal bits.
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

// find returns the bucket of the k-th largest magnitude, and its rank within the bucket, from 1.
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

// magnitude returns |x| as bits; as integers they have the order of the numbers.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
