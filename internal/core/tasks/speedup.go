package tasks

import (
	"cmp"
	"slices"
	"time"
)

// The speed-up of DropCompute (Giladi et al., NeurIPS 2023, recalled [M]). A worker whose micro-batches end at c_1 < ... < c_M
// begins no micro-batch after tau: so it computes m(tau) = 1 + |{j < M : c_j <= tau}| of them, until c_m. All wait for the
// slowest worker, and an iteration has a time Tc without computing:
//
//	S(tau) = E[m(tau)] / M * (E[max_n c_M] + Tc) / (E[max_n c_m(tau)] + Tc)
//
// That is the samples per second with tau, over those without. The paper's expectations are means over a profile here, and
// m counts samples, since the last micro-batch may be smaller and batches of workers may differ.
//
// Two rules are ours. The tenth of the iterations whose longest worker takes longest does not count, and neither does the tenth
// where it is fastest: one stall of a host would make it look good to leave out nearly everything. And of all tau with nearly the
// largest speed-up the largest is taken, since it leaves out least.

// profile is what one worker measured: in each row the ends of the micro-batches of an iteration, since the first one began,
// and then how long the worker did not compute after the last one.
type profile struct {
	samples []int64 // samples that are computed by the end of each micro-batch
	rows    [][]int64
}

// idle is the time without computing in an iteration.
func (p *profile) idle(k int) int64 { return p.rows[k][len(p.samples)] }

// until is what a worker computes in iteration k if it begins no micro-batch after tau: so many samples, and for how long.
func (p *profile) until(tau int64, k int) (samples, took int64) {
	ends := p.rows[k][:len(p.samples)-1]
	j, _ := slices.BinarySearch(ends, tau+1) // the first that ends after tau
	return p.samples[j], p.rows[k][j]
}

// candidatesMax is how many values of tau are tried. They lie just before quantiles of the measured ends: between two ends all values do
// the same, and behind the last one nothing is left out.
const candidatesMax = 256

// nearly is the share of the largest speed-up that is good enough.
const nearly = 0.99

// bestTau returns tau, and its speed-up. tau 0 stands for no limit: nothing is gained. All profiles have the same number of iterations, at
// least one.
func bestTau(all []profile) (tau time.Duration, speedUp float64) {
	all = trimmed(all)
	var ends []int64
	for i := range all {
		for _, row := range all[i].rows {
			ends = append(ends, row[:len(all[i].samples)-1]...)
		}
	}
	slices.Sort(ends)
	communicates := timeWithoutComputing(all)
	n := min(candidatesMax, len(ends))
	speedUps, most := make([]float64, n), 1.0
	for c := range n {
		speedUps[c] = speedUpOf(all, ends[c*len(ends)/n]-1, communicates)
		most = max(most, speedUps[c])
	}
	if most*nearly <= 1 {
		return 0, 1
	}
	for c := n - 1; ; c-- {
		if speedUps[c] >= most*nearly {
			return time.Duration(max(1, ends[c*len(ends)/n]-1)), speedUps[c]
		}
	}
}

// trimmed leaves out the iterations that took longest and shortest.
func trimmed(all []profile) (some []profile) {
	n := len(all[0].rows)
	longest := make([]int64, n)
	order := make([]int, n)
	for k := range n {
		order[k] = k
		for i := range all {
			longest[k] = max(longest[k], all[i].rows[k][len(all[i].samples)-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(longest[a], longest[b]) })
	for i := range all {
		p := profile{samples: all[i].samples}
		for _, k := range order[n/10 : n-n/10] {
			p.rows = append(p.rows, all[i].rows[k])
		}
		some = append(some, p)
	}
	return some
}

// timeWithoutComputing is Tc: the worker that waits least in an iteration waits for no other.
func timeWithoutComputing(all []profile) float64 {
	sum := 0.0
	for k := range all[0].rows {
		least := all[0].idle(k)
		for i := range all {
			least = min(least, all[i].idle(k))
		}
		sum += float64(least)
	}
	return sum / float64(len(all[0].rows))
}

// speedUpOf is S(tau), where an iteration takes communicates beside its computing.
func speedUpOf(all []profile, tau int64, communicates float64) float64 {
	var done, of, cut, whole float64
	for k := range all[0].rows {
		var longest, longestCut int64
		for i := range all {
			p := &all[i]
			last := len(p.samples) - 1
			n, took := p.until(tau, k)
			done, of = done+float64(n), of+float64(p.samples[last])
			longest, longestCut = max(longest, p.rows[k][last]), max(longestCut, took)
		}
		cut, whole = cut+float64(longestCut), whole+float64(longest)
	}
	n := float64(len(all[0].rows))
	if cut/n+communicates <= 0 { // no clock has moved
		return 1
	}
	return done / of * ((whole/n + communicates) / (cut/n + communicates))
}
