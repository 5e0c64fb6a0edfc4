package scheme_test

import (
	"math"

	"fluentps/ps/scheme"
)

// never stands for the event of something that has not happened.
const never = 1 << 40

// playVAP goes through the history once. It finds for each push the event at which it is folded (h.folded), and for
// each pull the event at which it is answered. At every event it searches everything that came before.
func (h *hindsight) playVAP() {
	h.folded = map[int]int{}
	for k := range h.history {
		h.answered[k] = -1
	}
	for k := range h.history {
		for p := range k + 1 {
			if _, in := h.folded[p]; !in && h.counts(p) && h.fits(p, k) {
				h.folded[p] = k
			}
		}
		for a := range k + 1 {
			if ev := h.history[a]; ev.Kind == scheme.Wanted && h.answered[a] < 0 && !h.left[a][ev.Worker] &&
				!h.leftBetween(ev.Worker, a, k) && h.mayGo(a, k) {
				h.answered[a] = k
			}
		}
	}
}

// foldedAt is the event at which push p is folded, never if it was not folded yet.
func (h *hindsight) foldedAt(p int) int {
	if k, in := h.folded[p]; in {
		return k
	}
	return never
}

// fits is the condition for push p at event k.
func (h *hindsight) fits(p, k int) bool {
	me := h.history[p].Worker
	sum, n := 0.0, 0
	for older := range p {
		if h.history[older].Worker == me && h.counts(older) && h.inTransit(older, k) {
			sum += element(h.history[older])
			n++
		}
	}
	if n == 0 || h.keys["strict"] == "false" && h.clock[k+1][me] <= h.v[k+1] {
		return true
	}
	bound := h.fraction("v0") / math.Sqrt(float64(h.v[k+1]+1))
	return (h.keys["release"] == "soft" || p == k) && 1/float64(h.env.Workers)*(sum+element(h.history[p])) <= bound
}

// element is the largest element of a push's mean.
func element(ev scheme.Event) float64 {
	if math.IsNaN(float64(ev.NormInf)) {
		return math.Inf(1)
	}
	return float64(ev.NormInf)
}

// inTransit says whether some worker computes without push p, when event k has come and before its replies.
func (h *hindsight) inTransit(p, k int) bool {
	for q := range h.env.Workers {
		if r, computes := h.computesSince(int32(q), k); computes && r < h.foldedAt(p) {
			return true
		}
	}
	return false
}

// computesSince is the event that answered the pull for which q computes at event k.
func (h *hindsight) computesSince(q int32, k int) (event int, computes bool) {
	event = -1
	for a := range k + 1 {
		if h.history[a].Worker == q && h.answered[a] >= 0 && h.answered[a] < k {
			event = max(event, h.answered[a])
		}
	}
	if event < 0 {
		return 0, false
	}
	for j := event + 1; j <= k; j++ {
		if ev := h.history[j]; ev.Worker == q && ev.Kind != scheme.Wanted && ev.Kind != scheme.Offered && ev.Kind != scheme.Sent {
			return 0, false // it has pushed, or left
		}
	}
	return event, true
}

// mayGo says whether the pull of event a may be answered at event k: no push of its worker waits, and the pull is
// within the bound, if there is one, like a soft pull of ssp.
func (h *hindsight) mayGo(a, k int) bool {
	w := h.history[a].Worker
	for p := range a {
		if h.history[p].Worker == w && h.counts(p) && h.foldedAt(p) > k {
			return false
		}
	}
	if bound := h.twin.bound(h, a, k); h.lead(a) <= bound {
		return true
	}
	return h.v[k+1] > h.v[a+1] && h.history[a].Iter-h.v[k+1] <= h.twin.bound(h, a, k)
}

// foldedByValue lists the pushes that are folded at event k, in order of arrival.
func (h *hindsight) foldedByValue(k int) (out []scheme.Decision) {
	for p := range k + 1 {
		if ev := h.history[p]; h.counts(p) && h.foldedAt(p) == k {
			out = append(out, fold(ev, 0), commit(ev.Worker, ev.Iter, 1/float64(h.env.Workers), ev.Samples))
		}
	}
	return out
}
