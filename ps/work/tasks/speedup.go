package tasks

import (
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

// candidatesMax is how many values of tau are tried. They are quantiles of the measured ends.
const candidatesMax = 256

// bestTau returns the tau with the largest speed-up, and the speed-up. tau 0 stands for no limit: nothing is gained. All profiles
// have the same number of iterations, at least one.
func bestTau(all []profile) (tau time.Duration, speedUp float64) {
	var ends []int64
	for i := range all {
		for _, row := range all[i].rows {
			ends = append(ends, row[:len(all[i].samples)-1]...)
		}
	}
	slices.Sort(ends)
	communicates := timeWithoutComputing(all)
	speedUp = 1
	for c := range min(candidatesMax, len(ends)) {
		t := ends[c*len(ends)/min(candidatesMax, len(ends))]
		if s := speedUpOf(all, t, communicates); s > speedUp && t > 0 {
			tau, speedUp = time.Duration(t), s
		}
	}
	return tau, speedUp
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
