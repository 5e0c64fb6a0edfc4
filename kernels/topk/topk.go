// Package topk holds the kernel top_k.
package topk

import "math"

// words returns the greatest length of a message: a count, and k pairs.
func words(k int) int { return 1 + 2*k }

// send chooses among n elements those whose magnitude is above threshold. If these are more than k, or if threshold
// is below 0, it chooses the k elements of largest magnitude. Ties go to the lower index, and NaN counts as the
// largest. The elements are x, or the sums of residual and x if residual is not empty. The residual then keeps the
// elements that are not chosen.
//
// sent becomes the count, then the pairs of index and value, indices increasing. Integers are the bits of a
// float32 word. Words behind the last pair do not change.
func send(sent, x, residual []float32, n, k int, threshold float32) {
	v := x[:n]
	if len(residual) > 0 {
		residual = residual[:n]
		for i, g := range v {
			residual[i] += g
		}
		v = residual
	}
	k = min(k, n)
	at, ties := magnitude(threshold), 0
	if threshold < 0 || above(v, at) > k {
		at, ties = largest(v, k)
	}
	count := 0
	for i, value := range v {
		m := magnitude(value)
		if m < at || m == at && ties == 0 {
			continue
		}
		if m == at {
			ties--
		}
		sent[1+2*count], sent[2+2*count] = math.Float32frombits(uint32(i)), value
		count++
		if len(residual) > 0 {
			residual[i] = 0
		}
	}
	sent[0] = math.Float32frombits(uint32(count))
}

// largest finds the k elements of v of largest magnitude: all elements whose magnitude is above at, and the first
// `ties` of those whose magnitude is at. Three passes count by 11, 11 and 9 bits of the magnitude, upper bits first.
// Each pass counts only elements with the bits that the passes before have found.
func largest(v []float32, k int) (at uint32, ties int) {
	if k == 0 {
		return math.MaxUint32, 0
	}
	left := uint(31) // number of lower bits that are not known yet; at holds the upper ones
	for _, width := range []uint{11, 11, 9} {
		var counts [1 << 11]int
		next, mask := left-width, uint32(1)<<width-1
		for _, x := range v {
			if m := magnitude(x); m>>left == at {
				counts[m>>next&mask]++
			}
		}
		bits := mask
		for ; k > counts[bits]; bits-- {
			k -= counts[bits]
		}
		at, left = at<<width|bits, next
	}
	return at, k
}

func above(v []float32, at uint32) (count int) {
	for _, x := range v {
		if magnitude(x) > at {
			count++
		}
	}
	return count
}

// magnitude returns |x| as bits. As integers, these have the order of the numbers.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }
