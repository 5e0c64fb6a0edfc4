package scheme_test

import (
	"slices"
	"time"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// quorumTwin is what hindsight finds out about the rounds of quorum.
type quorumTwin struct {
	decisions [][]scheme.Decision // per event: its folds, commits and alarms
	ended     []bool              // per event: it ended a round
	waits     []bool              // per event: its worker has arrived in the open round
}

// playQuorum goes through the history with sets and lists that it searches.
func (h *hindsight) playQuorum() {
	q := &quorumTwin{}
	h.quorum = q
	quorum := int(h.number("required"))
	if quorum == 0 {
		quorum = h.env.Workers/2 + 1
	}
	version := h.env.Start
	var arrived []int32                // of the round, in order; a worker may be in it twice
	opened := 0                        // the event with which the round opened
	var pending []scheme.Event         // pushes since the last commit
	var lags []time.Duration           // all of them
	heads := map[int64]time.Duration{} // landing of the first push of each version
	began, until := time.Duration(-1), time.Duration(-1)
	for k, ev := range h.history {
		var out []scheme.Decision
		here := func(w int32) bool { return !h.left[k+1][w] }
		everybody := slices.Contains(h.left[k+1], false)
		end := func(iter int64) {
			sum := int64(0)
			for _, p := range pending {
				sum += p.Samples
			}
			if len(pending) > 0 {
				out = append(out, commit(scheme.NoWorker, iter, 1, sum))
				version++
			}
			arrived, pending, began, until, opened = nil, nil, ev.At, -1, k+1
			q.ended[k] = true
		}
		q.ended = append(q.ended, false)
		moves := ev.Kind == scheme.Alarm || ev.Kind == scheme.Left && !h.left[k][ev.Worker] || ev.Kind == scheme.Joined && h.left[k][ev.Worker] ||
			ev.Kind == scheme.WaitsElsewhere || ev.Kind == scheme.WaitedElsewhere
		if ev.Kind == scheme.Pushed && !h.left[k][ev.Worker] {
			moves = true
			if ev.Samples > 0 {
				out = append(out, fold(ev, float64(min(1, len(pending)))))
				pending = append(pending, ev)
			}
			late := ev.Seen < version
			if _, ok := heads[ev.Seen]; !ok && !late {
				heads[ev.Seen] = ev.At
			}
			if head, ok := heads[ev.Seen]; ok && !slices.Contains(arrived, ev.Worker) || ok && late {
				lags = append(lags, ev.At-head)
			}
			if !late {
				arrived = append(arrived, ev.Worker)
			}
		}
		different := len(slices.Compact(slices.Sorted(slices.Values(arrived))))
		all, live := true, 0
		rest, ahead, elsewhere := []int32{}, true, true // rest: those that have not arrived
		for w := range int32(h.env.Workers) {
			if here(w) {
				if live++; slices.Contains(arrived, w) {
					continue
				}
				all, rest = false, append(rest, w)
				ahead = ahead && h.clock[k+1][w] > h.v[k+1]
				elsewhere = elsewhere && h.waitsElsewhere(w, opened, k, version)
			}
		}
		switch {
		case !moves:
		case !everybody:
			end(h.v[k+1])
			began = -1
		case len(arrived) == 0:
		case all || until >= 0 && ev.At >= until:
			end(h.v[k+1])
		case until < 0 && different < min(quorum, live) && !elsewhere:
			for _, w := range rest {
				if len(arrived) > different && ahead && h.askedAt(w, opened, k) < 0 {
					out = append(out, scheme.Decision{Kind: scheme.AskElsewhere, Worker: w, Shard: schemetest.Shard, Iter: version})
				}
			}
		case until < 0:
			grace := time.Duration(h.fraction("grace_max") * float64(max(0, ev.At-max(began, 0))))
			if began < 0 {
				grace = 0
			}
			if len(lags) >= h.env.Workers {
				last := lags[max(0, len(lags)-max(16, 4*h.env.Workers)):]
				m := middle(last)
				var away []time.Duration
				for _, x := range last {
					away = append(away, (x - m).Abs())
				}
				grace = min(grace, m+time.Duration(h.fraction("mad")*float64(middle(away))))
			}
			if until = ev.At + grace; grace == 0 {
				end(h.v[k+1])
			} else {
				out = append(out, scheme.Decision{Kind: scheme.WakeAt, Worker: scheme.NoWorker, Shard: schemetest.Shard, At: until})
			}
		}
		q.decisions = append(q.decisions, out)
		q.waits = append(q.waits, slices.Contains(arrived, ev.Worker))
		if began < 0 && ev.Kind == scheme.Wanted && !h.left[k][ev.Worker] {
			began = ev.At // nobody has arrived, so the pull is answered
		}
	}
}

// askedAt is the event of the round that opened with event from at which a worker was asked whether it waits elsewhere, if it
// has not pushed, left or come since, and -1 if there is none.
func (h *hindsight) askedAt(w int32, from, k int) int {
	for i := k; i >= from; i-- {
		if i < k && slices.ContainsFunc(h.quorum.decisions[i],
			func(d scheme.Decision) bool { return d.Kind == scheme.AskElsewhere && d.Worker == w }) {
			return i
		}
		if ev := h.history[i]; ev.Worker == w && (ev.Kind == scheme.Pushed || ev.Kind == scheme.Left || ev.Kind == scheme.Joined) {
			return -1
		}
	}
	return -1
}

// waitsElsewhere says whether a worker has answered so, with the newest version, and not gone on.
func (h *hindsight) waitsElsewhere(w int32, from, k int, version int64) bool {
	asked := h.askedAt(w, from, k)
	for i := k; asked >= 0 && i > asked; i-- {
		if ev := h.history[i]; ev.Worker == w && (ev.Kind == scheme.WaitedElsewhere || ev.Kind == scheme.WaitsElsewhere && ev.Seen == version) {
			return ev.Kind == scheme.WaitsElsewhere
		}
	}
	return false
}

// middle is the median: of an even number the lower one.
func middle(xs []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[(len(sorted)-1)/2]
}

// quorumAdmits answers a pull at once unless its worker has arrived and somebody is behind it.
func (h *hindsight) quorumAdmits(a int) bool { return !h.quorum.waits[a] || h.lead(a) <= 0 }

// quorumBound releases a delayed pull at the end of its round, and at the latest when everybody has caught up.
func (h *hindsight) quorumBound(_, k int) int64 {
	if h.quorum.ended[k] {
		return boundless
	}
	return 0
}
