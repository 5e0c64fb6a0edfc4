package sums

import "math/bits"

// ring sends N-1 parts to the next rank, each added up on its way, and then N-1 sums.
func ring(me, n, elements int) (all []phase) {
	part := func(k int) span {
		k = (k%n + n) % n
		return span{elements * k / n, elements * (k + 1) / n}
	}
	for step := range 2 * (n - 1) {
		all = append(all, phase{to: (me + 1) % n, from: (me + n - 1) % n, out: part(me - step), in: part(me - step - 1), add: step < n-1})
	}
	return all
}

// halving is recursive halving, by which each rank adds up one part with log2 N partners, and recursive doubling, by
// which it collects the sums: Rabenseifner's algorithm (Thakur, Rabenseifner and Gropp, IJHPCA 2005) [A]. It has 2
// log2 N steps instead of the ring's 2 (N-1), so it is faster for short vectors. Where N is no power of two, the
// ranks beyond the largest one first give their vectors to partners, and at last get the sums.
func halving(me, n, elements int) (all []phase) {
	whole, power := span{0, elements}, 1<<(bits.Len(uint(n))-1)
	if me >= power {
		give := phase{to: me - power, from: -1, out: whole}
		get := phase{to: -1, from: me - power, in: whole}
		return []phase{give, get}
	}
	partner := me + power
	if partner < n {
		all = append(all, phase{to: -1, from: partner, in: whole, add: true})
	}
	mine := whole
	var others []phase // in the order of halving: doubling goes back
	for distance := power / 2; distance > 0; distance /= 2 {
		low, high := span{mine.lo, (mine.lo + mine.hi) / 2}, span{(mine.lo + mine.hi) / 2, mine.hi}
		keep, give := low, high
		if me&distance != 0 {
			keep, give = high, low
		}
		with := me ^ distance
		all = append(all, phase{to: with, from: with, out: give, in: keep, add: true})
		others = append(others, phase{to: with, from: with, out: keep, in: give})
		mine = keep
	}
	for i := len(others) - 1; i >= 0; i-- {
		all = append(all, others[i])
	}
	if partner < n {
		all = append(all, phase{to: partner, from: -1, out: whole})
	}
	return all
}
