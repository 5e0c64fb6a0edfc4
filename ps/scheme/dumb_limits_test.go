package scheme_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/ps/scheme"
)

// dsspAdmits replays every pull of the worker of event a since it came, to know its grant.
func (h *hindsight) dsspAdmits(a int) bool {
	sL, sU := h.number("s_l"), h.number("s_u")
	w := h.history[a].Worker
	grant, admitted := int64(0), false
	for k := h.cameAt(w, a) + 1; k <= a; k++ {
		if ev := h.history[k]; ev.Worker != w || ev.Kind != scheme.Wanted || h.left[k][w] {
			continue
		}
		lead := h.lead(k)
		bounded := h.keys["mode"] == "bounded"
		if bounded && lead > sU {
			grant = 0
		}
		switch {
		case grant > 0:
			grant--
			admitted = true
		case lead <= sL:
			admitted = true
		default:
			grant = 0
			if h.fastest(w, k) {
				grant = h.predicted(w, k, sU-sL)
			}
			if bounded {
				grant = max(0, min(grant, sU-lead+1))
			}
			if admitted = grant > 0; admitted && bounded {
				grant--
			}
		}
	}
	return admitted
}

// predicted tries every pair of a push of w and a push of the slowest.
func (h *hindsight) predicted(w int32, k int, rMax int64) (best int64) {
	slowest := int32(0)
	for h.left[k+1][slowest] || h.clock[k+1][slowest] != h.v[k+1] {
		slowest++
	}
	p, s := h.pushTimes(w, k), h.pushTimes(slowest, k)
	if len(p) < 2 || len(s) < 2 {
		return 0
	}
	p, s = p[len(p)-2:], s[len(s)-2:]
	away := time.Duration(-1)
	for r := range rMax + 1 {
		for m := range rMax + 1 {
			mine := p[1] + time.Duration(r)*(p[1]-p[0])
			its := s[1] + time.Duration(m+1)*(s[1]-s[0])
			if d := (mine - its).Abs(); away < 0 || d < away {
				best, away = r, d
			}
		}
	}
	return best
}

// pushTimes lists when the worker has pushed since it came, up to event k.
func (h *hindsight) pushTimes(w int32, k int) (at []time.Duration) {
	for j := h.cameAt(w, k) + 1; j <= k; j++ {
		if ev := h.history[j]; ev.Kind == scheme.Pushed && ev.Worker == w && !h.left[j][w] {
			at = append(at, ev.At)
		}
	}
	return at
}

// fraction is the value of a key that is not an integer.
func (h *hindsight) fraction(key string) (x float64) {
	if _, err := fmt.Sscan(h.keys[key], &x); err != nil {
		panic(fmt.Sprintf("%s: %v", key, err))
	}
	return x
}

// psspBound is the bound for a paused pull: s, or the cap alone.
func (h *hindsight) psspBound(_, _ int) int64 {
	if h.keys["recheck"] != "false" {
		return h.number("staleness")
	}
	if most := h.number("hard_cap"); most > 0 {
		return most
	}
	return boundless
}

// psspGates says whether a coin decides event a: at any k >= s, or k >= 0 without the cut-off.
func (h *hindsight) psspGates(a int) bool {
	ev := h.history[a]
	if ev.Kind != scheme.Wanted || h.left[a][ev.Worker] {
		return false
	}
	k := h.lead(a) - 1
	return k >= h.number("staleness") || h.keys["cut_off"] == "false" && k >= 0
}

// psspCoin is the coin of event a: 53 bits of a hash of seed, rule, server, shard where it has its own, worker and clock.
func (h *hindsight) psspCoin(a int) float64 {
	ev, of := h.history[a], []uint64{uint64(h.env.Rule), uint64(h.env.Server)}
	if h.keys["coin"] == "shard" {
		of = append(of, uint64(ev.Shard))
	}
	state := h.env.Seed
	for _, x := range append(of, uint64(ev.Worker), uint64(ev.Iter)) {
		for range x + 1 { // SplitMix64 steps by an odd constant, and outputs a hash of its position
			state += 0x9e3779b97f4a7c15
		}
		state ^= state >> 30
		state *= 0xbf58476d1ce4e5b9
		state ^= state >> 27
		state *= 0x94d049bb133111eb
		state ^= state >> 31
	}
	return math.Ldexp(float64(state>>11), -53)
}

// psspAdmits says whether the pull of event a is answered at once.
func (h *hindsight) psspAdmits(a int) bool {
	if !h.psspGates(a) {
		return true
	}
	if most := h.number("hard_cap"); most > 0 && h.lead(a) > most {
		return false
	}
	if h.keys["pause_only_fastest"] == "true" && !h.fastest(h.history[a].Worker, a) {
		return true
	}
	chance := h.fraction("probability")
	if h.keys["mode"] == "dynamic" {
		centre := map[string]int64{"s": 1, "2s": 2}[h.keys["centre"]] * h.number("staleness")
		chance = h.fraction("alpha") / (1 + math.Exp(float64(centre-(h.lead(a)-1))))
		if h.keys["significance"] == "true" {
			chance *= h.significance(h.history[a].Worker, a)
		}
	}
	return h.psspCoin(a) >= chance
}

// significance is the significance of the last push of w since it came; 1 if there is none.
func (h *hindsight) significance(w int32, a int) float64 {
	for k := a; k > h.cameAt(w, a); k-- {
		if ev := h.history[k]; ev.Kind == scheme.Pushed && ev.Worker == w && !h.left[k][w] {
			if ev.Norm2 == 0 {
				return 0
			}
			if sf := float64(ev.Norm2) / float64(ev.NormW); !math.IsNaN(sf) {
				return math.Min(1, sf)
			}
			return 1
		}
	}
	return 1
}

// dspsBound is s_t after event k, from all that happened up to it.
func (h *hindsight) dspsBound(k int) int64 {
	if k < 0 {
		return h.number("s_min")
	}
	if h.bound[k] == unknown {
		h.bound[k] = h.searchBound(k)
	}
	return h.bound[k]
}

func (h *hindsight) searchBound(k int) int64 {
	window := h.number("window")
	if h.v[k]/window == h.v[k+1]/window {
		return h.dspsBound(k - 1)
	}
	var means []float64
	for w := range h.env.Workers {
		if h.left[k+1][w] {
			continue
		}
		times := h.iterationTimes(int32(w), k)
		if len(times) == 0 {
			return h.dspsBound(k - 1)
		}
		mean := times[0]
		for _, x := range times[1:] {
			mean += h.fraction("smoothing") * (x - mean)
		}
		means = append(means, mean)
	}
	if len(means) == 0 {
		return h.dspsBound(k - 1)
	}
	low, high := slices.Min(means), slices.Max(means)
	alpha := 1.0
	if low == high {
		alpha = 0
	} else if low > 0 {
		alpha = math.Min(1, math.Max(0, high/low-1))
	}
	least, most := h.number("s_min"), h.number("s_max")
	return least + int64(math.Round(alpha*float64(most-least)))
}

// iterationTimes lists, for the pushes of w since it came, the times from the reply before each. No push comes between
// a pull and its reply, so the replies that it needs come before event k.
func (h *hindsight) iterationTimes(w int32, k int) (times []float64) {
	since := -1
	for j := h.cameAt(w, k) + 1; j <= k; j++ {
		ev := h.history[j]
		if ev.Worker != w || h.left[j][w] {
			continue
		}
		switch ev.Kind {
		case scheme.Wanted:
			since = j
		case scheme.Pushed:
			if since >= 0 {
				times = append(times, float64(ev.At-h.history[h.pullAnsweredAt(since)].At))
			}
			since = -1
		}
	}
	return times
}

// required is N_t.
func (h *hindsight) required() int {
	if n := int(h.number("required")); n > 0 {
		return min(n, h.env.Workers)
	}
	return h.env.Workers
}

// dropLate says whether the push at event k is of an iteration that is closed, or that N_t others have pushed.
func (h *hindsight) dropLate(k int) bool {
	i := h.history[k].Iter
	return i < h.v[k] || len(h.pushesOf(i, k-1)) >= h.required()
}

// dropV moves v after event k past every iteration that N_t workers have pushed, or that nobody in the run can push any
// more.
func (h *hindsight) dropV(v int64, k int, clock []int64, left []bool) int64 {
	for {
		live := liveClocks(clock, left)
		if len(h.pushesOf(v, k)) < h.required() && (len(live) == 0 || slices.Min(live) <= v) {
			return v
		}
		v++
	}
}

// several adds up all pushes from the first on, q by q, and returns the decisions at event k.
func (h *hindsight) several(k int) (out []scheme.Decision) {
	q, sum, n := h.number("q"), int64(0), int64(0)
	lambda0, versions := h.fraction("lambda0"), h.env.Start
	var weights, weighed float64
	commits := func(w int32, iter int64) {
		d := commit(w, iter, float64(n)*(1/float64(q)), sum)
		if lambda0 > 0 {
			d.Scale, d.Weight = weights*(1/float64(q)), 1/weighed
		}
		out = append(out, d)
		n, sum, weights, weighed = 0, 0, 0, 0
		versions++
	}
	for p := range k + 1 {
		ev := h.history[p]
		out = nil
		if h.counts(p) {
			d := fold(ev, float64(min(1, n)))
			if tau := versions - ev.Seen; lambda0 > 0 {
				d.Weight = lambda0 / float64(max(1, tau))
			}
			out = append(out, d)
			n, sum, weights, weighed = n+1, sum+ev.Samples, weights+d.Weight, weighed+d.Weight*float64(ev.Samples)
			if n == q {
				commits(ev.Worker, ev.Iter)
			}
		}
		if n > 0 && ev.Kind == scheme.Left && !h.left[p][ev.Worker] && !slices.Contains(h.left[p+1], false) {
			commits(scheme.NoWorker, h.v[p])
		}
	}
	return out
}
